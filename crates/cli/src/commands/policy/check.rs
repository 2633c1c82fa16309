//! `chio policy check`: whether a document is one, and what it comes to.

use anyhow::Result;
use chio_policy::{Policy, Unproved};
use chio_yaml::Problem;
use serde_json::{Value, json};

use crate::date::span;
use crate::io::Io;
use crate::outcome::Outcome;
use crate::policies::{Source, is_built_in};
use crate::policy_args::broken;
use crate::store_args::block_on;
use crate::text;

const HELP: &str = "\
Reads the document with all that it extends, and tells everything that is wrong with it, each with
its file, line and column. One that is in order is told by its hash, which stands in the receipt of
every call that it judges, and by its guards in the order in which they are asked. Each guard has to
stop a call that is made for it; a policy that lets one pass is not served under.

A note is about something that is allowed and may surprise.

Examples:
  chio policy check policy.yaml
  chio policy check strict --json";

/// Check that a policy is in order
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The policy: a file, or a built-in one
    #[arg(value_name = "FILE|NAME")]
    policy: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let source = Source::new(&args.policy, io.folder, &io.own);
    let policy = match source.read() {
        Ok(policy) => policy,
        Err(problems) if is_there(args, io) => return refuse(args, io, &problems),
        Err(problems) => return Err(broken(io, &args.policy, &problems)),
    };
    let proof = block_on(async { Ok(policy.proven().await.map(drop)) })?;
    let name = source.name(&policy);
    if args.json {
        io.json(&document(&name, &policy, &proof))?;
    } else {
        show(io, &name, &policy, &proof)?;
    }
    Ok(Outcome::of(proof.is_ok()))
}

/// Whether there is a document to speak of.
fn is_there(args: &Args, io: &Io<'_>) -> bool {
    is_built_in(&args.policy) || io.folder.join(&args.policy).is_file()
}

fn refuse(args: &Args, io: &mut Io<'_>, problems: &[Problem]) -> Result<Outcome> {
    if args.json {
        let problems: Vec<Value> = problems.iter().map(in_place).collect();
        io.json(&json!({"valid": false, "problems": problems}))?;
        return Ok(Outcome::Invalid);
    }
    for problem in problems {
        io.say(problem)?;
    }
    io.field("result", format_args!("NOT VALID, {}", text::count(problems.len(), "problem")))?;
    Ok(Outcome::Invalid)
}

/// Something that is wrong, or may surprise, for scripts.
fn in_place(Problem { place, message }: &Problem) -> Value {
    json!({"file": *place.file, "line": place.line, "column": place.column, "message": message})
}

fn document(name: &str, policy: &Policy, proof: &Result<(), Unproved>) -> Value {
    let guards: Vec<&str> = policy.guards().iter().map(|guard| guard.name()).collect();
    let capabilities = policy.capabilities().iter();
    let capabilities: Vec<Value> = capabilities
        .map(|it| json!({"ttl_seconds": it.ttl.as_secs(), "scope": it.scope}))
        .collect();
    let files: Vec<String> = policy.files().iter().map(|it| it.display().to_string()).collect();
    json!({
        "valid": proof.is_ok(),
        "problems": [],
        "unproved": proof.as_ref().err().map(Unproved::to_string),
        "name": name,
        "hash": policy.hash(),
        "files": files,
        "guards": guards,
        "capabilities": capabilities,
        "notes": policy.notes().iter().map(in_place).collect::<Vec<_>>(),
    })
}

fn show(io: &mut Io<'_>, name: &str, policy: &Policy, proof: &Result<(), Unproved>) -> Result<()> {
    io.field("policy", name)?;
    io.field("hash", policy.hash())?;
    io.list("files", policy.files().iter().map(|file| file.display()))?;
    io.list("guards", policy.guards().iter().map(|guard| guard.name()))?;
    let capabilities = policy.capabilities().iter().map(|it| {
        let scope = &it.scope;
        let parts = [
            (scope.grants.len(), "tool grant"),
            (scope.resource_grants.len(), "resource grant"),
            (scope.prompt_grants.len(), "prompt grant"),
        ];
        let parts = parts.into_iter().filter(|(number, _)| *number > 0);
        let parts: Vec<String> = parts.map(|(number, noun)| text::count(number, noun)).collect();
        format!("{} for {}", parts.join(", "), span(it.ttl.as_secs()))
    });
    io.list("hands out", capabilities)?;
    for note in policy.notes() {
        io.say(format_args!("note: {note}"))?;
    }
    match proof {
        Ok(()) => io.field("result", "valid, and every guard stops the call made for it"),
        Err(unproved) => {
            io.field("result", "NOT VALID")?;
            io.complain("error", unproved);
            Ok(())
        }
    }
}
