//! `chio policy init`: a document to begin with.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use crate::files::Access;
use crate::io::Io;

const HELP: &str = "\
Writes a policy that builds upon the built-in `default`, with comments that say how to change it.

Examples:
  chio policy init
  chio policy init policies/agent.yaml";

const STARTER: &str = include_str!("init/starter.yaml");

/// Write a policy to begin with
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Where to
    #[arg(default_value = "policy.yaml")]
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    io.write_file(&args.file, STARTER.as_bytes(), Access::Ordinary, args.force)?;
    let file = args.file.display();
    if args.json {
        return io.json(&json!({"written_to": file.to_string()}));
    }
    io.field("written to", &file)?;
    io.say("")?;
    io.say("Next:")?;
    io.say(format_args!("  chio policy check {file}"))?;
    io.say(format_args!("  chio up --policy {file}"))
}
