//! `chio tour`: a short tour, made of the commands that it shows.

mod calls;
mod stage;

use std::path::PathBuf;

use anyhow::Result;

use self::stage::Stage;
use crate::io::Io;
use crate::outcome::INVALID;

const HELP: &str = "\
The tour makes keys, tokens and receipts in a folder of its own and removes it at the end. It shows
each command before it runs it. Nothing goes over the network.

Example:
  chio tour --dir tour      and look around in `tour` afterwards";

/// Take a short tour of keys, capabilities, delegation and receipts
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Make the files in this folder, and keep it
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Keep the folder
    #[arg(long)]
    keep: bool,
}

const PATH_PREFIX: &str = r#"{"type":"path_prefix","value":"/workspace"}"#;
const TO_3_CALLS: &str =
    r#"{"type":"reduce_budget","server_id":"files","tool_name":"read_file","max_invocations":3}"#;
const TO_100_CALLS: &str =
    r#"{"type":"reduce_budget","server_id":"files","tool_name":"read_file","max_invocations":100}"#;

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let mut stage = Stage::open(io, args.dir.as_deref(), args.keep)?;
    keys(&mut stage)?;
    capability(&mut stage)?;
    delegation(&mut stage)?;
    receipts(&mut stage)?;
    tampering(&mut stage)?;
    next(&mut stage)
}

fn keys(stage: &mut Stage<'_, '_>) -> Result<()> {
    stage.chapter(
        "Keys",
        "Four parties: an authority that issues capabilities, an agent and its sub-agent that use \
         them, and a kernel that signs receipts.",
    )?;
    for file in ["authority.key", "agent.key", "sub-agent.key", "kernel.key"] {
        stage.run(&format!("key new --out {file}"))?;
    }
    Ok(())
}

fn capability(stage: &mut Stage<'_, '_>) -> Result<()> {
    stage.chapter(
        "A capability",
        "The authority lets the agent read files below /workspace, ten times within the hour, and \
         hand that on.",
    )?;
    stage.run(&format!(
        "capability issue --key authority.key --subject agent.key \
         --grant files/read_file:invoke,delegate --constraint {PATH_PREFIX} \
         --max-invocations 10 --out agent.json"
    ))?;
    stage.run("capability inspect agent.json")?;
    stage.run("capability verify agent.json --trusted-issuer authority.key")
}

fn delegation(stage: &mut Stage<'_, '_>) -> Result<()> {
    stage.chapter(
        "Handing on",
        "The agent hands a part to its sub-agent: three calls, for ten minutes. Here one command \
         does the agent's half and, with --issuer-key, the authority's; apart they are `chio \
         capability delegate` and `chio capability issue --delegation`.",
    )?;
    let line = "capability delegate --parent agent.json --key agent.key --to sub-agent.key --step";
    stage.run(&format!(
        "{line} {TO_3_CALLS} --ttl 10m --issuer-key authority.key --out sub-agent.json"
    ))?;
    stage.run("capability verify sub-agent.json --trusted-issuer authority.key")?;
    stage.tell("Authority only narrows. A hundred calls are more than the agent has:")?;
    stage.run_expecting(INVALID, &format!("{line} {TO_100_CALLS}"))
}

fn receipts(stage: &mut Stage<'_, '_>) -> Result<()> {
    stage.chapter(
        "Receipts",
        "A kernel signs a receipt for every call, allowed or denied. No kernel runs here, so the \
         tour holds two calls of the sub-agent against its token, one for /workspace/notes.txt and \
         one for /etc/passwd, and signs what follows with kernel.key.",
    )?;
    calls::sign(stage)?;
    stage.run("receipt verify allowed.json --trusted-key kernel.key")?;
    stage.run("receipt show denied.json")?;
    stage.run("receipt verify denied.json --trusted-key kernel.key")
}

fn tampering(stage: &mut Stage<'_, '_>) -> Result<()> {
    stage.chapter(
        "One byte",
        "The agent gives itself ninety calls in place of ten, in a copy of its token.",
    )?;
    stage.replace(
        "agent.json",
        "tampered.json",
        r#""max_invocations": 10"#,
        r#""max_invocations": 90"#,
    )?;
    let line = "capability verify tampered.json --trusted-issuer authority.key";
    stage.run_expecting(INVALID, line)
}

fn next(stage: &mut Stage<'_, '_>) -> Result<()> {
    stage.chapter("Next", "")?;
    for line in [
        "  chio key new --help                make a key of your own",
        "  chio capability issue --help       say who may call what",
        "  chio capability delegate --help    every step that narrows",
        "  chio manifest sign --help          sign what a tool server offers",
        "  chio canonicalize --help           see the bytes that are signed",
    ] {
        stage.line(line)?;
    }
    stage.close()
}
