//! `chio policy explain`: what becomes of a call, guard by guard.

mod call;

use anyhow::Result;
use chio_policy::Policy;
use chio_policy::example::ExampleCall;
use chio_policy::judge::{Decision, Judged, Step};
use serde_json::{Value, json};

use super::test::say_steps;
use crate::io::Io;
use crate::policies::Source;
use crate::policy_args::broken;
use crate::store_args::block_on;
use call::CallArgs;

const HELP: &str = "\
Asks every guard of the policy about a call that you describe, with the code that judges real calls,
and tells what each says, in order. Nothing is run. The kernel stops at the first that denies; here
all are asked, so that you see all that stands in the way. The arguments are not printed; an output
that guards change is printed as it would leave. Tools of the server `demo` are taken as it publishes
them.

Besides its policy, a kernel looks at the caller's token, and a tool may itself ask for an approval.

Examples:
  chio policy explain default --tool read_file --args '{\"path\": \"/workspace/.env\"}'
  chio policy explain policy.yaml --tool demo/echo --args '{\"text\": \"hello\"}'
  chio policy explain policy.yaml --tool fetch --args '{\"url\": \"http://169.254.169.254/\"}'
  chio policy explain policy.yaml --tool search --output '{\"text\": \"...\"}' --protocol mcp";

/// Tell what becomes of a call, guard by guard
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The policy: a file, or a built-in one
    #[arg(value_name = "FILE|NAME")]
    policy: String,
    #[command(flatten)]
    call: CallArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let call = args.call.read(io)?;
    let source = Source::new(&args.policy, io.folder, &io.own);
    let policy = source.read().map_err(|problems| broken(io, &args.policy, &problems))?;
    let mut judged = block_on(async { Ok(policy.judge(&call).await) })?;
    tell_what_is_unknown(&mut judged, &call);
    let tool = format!("{}/{}", call.server_id, call.tool_name);
    if args.json {
        return io.json(&document(&policy, &tool, &judged));
    }
    io.field("policy", source.name(&policy))?;
    io.field("call", tool)?;
    say_steps(io, judged.steps.iter())?;
    if let Some(output) = judged.output.as_ref().filter(|it| call.output.as_ref() != Some(*it)) {
        io.field("output", output)?;
    }
    io.field("decision", decision(&judged))
}

/// A guard that has nothing to judge by allows; that is no word about the arguments.
fn tell_what_is_unknown(judged: &mut Judged, call: &ExampleCall) {
    if call.tool.as_ref().is_some_and(|tool| !tool.input_schema.is_empty()) {
        return;
    }
    let unjudged = |it: &&mut Step| it.guard == "argument-schema" && it.decision == Decision::Allow;
    for step in judged.steps.iter_mut().filter(unjudged) {
        step.reason = Some("not judged: no schema was given (--schema)".to_owned());
    }
}

fn decision(judged: &Judged) -> String {
    let word = match judged.decision {
        Decision::Allow => "allow: no guard stands in the way",
        Decision::Deny => "DENY",
        Decision::Ask => "ASK for an approval",
        Decision::Redact => "allow, redacted",
    };
    match &judged.by {
        Some(by) => format!("{word}, by {by}"),
        None => word.to_owned(),
    }
}

fn document(policy: &Policy, tool: &str, judged: &Judged) -> Value {
    let step = |it: &Step| {
        json!({
            "guard": it.guard, "about": if it.about_output { "output" } else { "call" },
            "decision": it.decision.word(), "reason": it.reason, "evidence": it.evidence,
        })
    };
    json!({
        "policy_hash": policy.hash(),
        "tool": tool,
        "decision": judged.decision.word(),
        "by": judged.by,
        "reason": judged.reason,
        "steps": judged.steps.iter().map(step).collect::<Vec<_>>(),
        "output": judged.output,
    })
}
