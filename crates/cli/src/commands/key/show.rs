//! `chio key show`: the public half of a key file.

use std::path::PathBuf;

use anyhow::Result;
use chio_core::checkpoint::log_id;
use serde_json::json;

use crate::io::Io;

const HELP: &str = "\
Example:
  chio key show authority.key";

/// Print the public key of a key file
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The key file: 64 hex digits, with or without 0x
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let key = io.read_key(&args.file)?;
    let public = key.public_key();
    if args.json {
        io.json(&json!({"public_key": public, "log_id": log_id(public)}))?;
    } else {
        io.field("public key", public)?;
        io.field("log id", format_args!("{} (of a kernel with this key)", log_id(public)))?;
    }
    Ok(())
}
