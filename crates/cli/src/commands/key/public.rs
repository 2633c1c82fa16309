//! `chio key public`: a public key in a file of its own, to be given away.

use std::path::PathBuf;

use anyhow::{Context, Result};
use chio_core::crypto::PublicKey;
use serde_json::json;

use crate::files::{Access, is_dash};
use crate::io::Io;
use crate::key_file::public_line;
use crate::store_args::{StoreArgs, block_on};

const HELP: &str = "\
Wherever a command takes a KEY, it takes the file that this one writes. Without a key file, it is the
public key of the store's authority, by which audits and exports verify.

Examples:
  chio key public --out authority.pub
  chio key public agent.key --out agent.pub";

/// Write a public key to a file that others may have
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The key file [default: the authority of the store]
    #[arg(value_name = "FILE", conflicts_with_all = ["store", "data"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "out")]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let key = key(args, io)?;
    let out = args.out.as_deref().filter(|path| !is_dash(path));
    if let Some(path) = out {
        io.write_file(path, public_line(&key).as_bytes(), Access::Ordinary, args.force)?;
    }
    let file = out.map(|path| path.display().to_string());
    match file {
        _ if args.json => io.json(&json!({"public_key": key, "file": file})),
        None => io.bytes(public_line(&key).as_bytes()),
        Some(file) => {
            io.field("public key", key)?;
            io.field("written to", file)
        }
    }
}

fn key(args: &Args, io: &mut Io<'_>) -> Result<PublicKey> {
    if let Some(file) = &args.file {
        return Ok(io.read_key(file)?.public_key().clone());
    }
    block_on(async {
        let store = args.store.open_existing(io).await?;
        store.authority_public().await?.context("the store has no authority: name a key file")
    })
}
