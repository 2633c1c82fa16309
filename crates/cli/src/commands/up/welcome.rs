//! What an operator reads who has just started it.

use std::path::Path;

use anyhow::Result;

use super::Args;
use super::agent::Tokens;
use crate::io::Io;
use crate::policies::Held;
use crate::program;
use crate::runtime::{Runtime, Served};
use crate::store_args::DEFAULT_FOLDER;
use crate::text;

/// A call that the policy `default` denies: a key of a cloud is about to be written down.
const DENIED: &str = "demo note_put '{\"name\": \"keys\", \"text\": \"AKIAQ3EGRT5KLMN2WXYZ\"}'";

/// Tells what was started, and what to try.
pub(super) fn print(
    io: &mut Io<'_>,
    args: &Args,
    runtime: &Runtime,
    served: &Served,
    tokens: &Tokens,
) -> Result<()> {
    io.field("kernel", runtime.kernel.public_key())?;
    io.field("state", args.data.display())?;
    let mut who = "every client on this machine, as the demo agent";
    for (edge, address, is_http) in served.addresses() {
        let mut notes = vec![edge.address_hint];
        if is_http {
            notes.insert(0, who);
            who = "the same";
        }
        notes.retain(|note| !note.is_empty());
        match notes.as_slice() {
            [] => io.field(edge.name, address)?,
            notes => io.field(edge.name, format_args!("{address} ({})", notes.join("; ")))?,
        }
    }
    for manifest in runtime.kernel.manifests() {
        let tools: Vec<&str> = manifest.tools.iter().map(|tool| tool.name.as_str()).collect();
        io.field("tools", format_args!("{}: {}", manifest.server_id, tools.join(", ")))?;
    }
    let policies = [("policy", Some(&runtime.policies.in_force))];
    for (name, held) in
        policies.into_iter().chain([("on trial", runtime.policies.on_trial.as_ref())])
    {
        // What is to be typed stays on one line.
        let summary = held.map(Held::summary).unwrap_or_default();
        match summary.split_once(": chio ") {
            Some((line, command)) => {
                io.list(name, [format!("{line}:"), format!("chio {command}")])?
            }
            None if summary.is_empty() => {}
            None => io.field(name, summary)?,
        }
    }
    for line in tokens.lines() {
        io.field("token", line)?;
    }
    io.say("")?;
    io.say("In another terminal:")?;
    for command in commands(args, runtime, tokens) {
        io.say(format_args!("  {command}"))?;
    }
    io.say("")?;
    io.say("Ctrl-C ends it. A line for each call:")
}

/// What to paste: an allowed call, a denied one, the receipts of both.
fn commands(args: &Args, runtime: &Runtime, tokens: &Tokens) -> [String; 3] {
    let chio = program::typed();
    let place = if args.data == Path::new(DEFAULT_FOLDER) {
        String::new()
    } else {
        format!(" --data {}", text::quoted(&args.data.display().to_string()))
    };
    let (tool, arguments) = tokens.example();
    // What another policy makes of it is not known here.
    let why =
        if runtime.policies.in_force.source.is_default() { "   # denied: a secret" } else { "" };
    [
        format!("{chio} call{place} demo {tool}{arguments}"),
        format!("{chio} call{place} {DENIED}{why}"),
        format!("{chio} receipt list{place}"),
    ]
}
