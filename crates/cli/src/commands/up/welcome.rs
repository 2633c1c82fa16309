//! What an operator reads who has just started it.

use std::path::Path;

use anyhow::Result;

use super::Args;
use super::agent::Tokens;
use crate::io::Io;
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
    io.field("policy", runtime.policies.in_force.summary())?;
    if let Some(trial) = &runtime.policies.on_trial {
        io.field("on trial", trial.summary())?;
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
