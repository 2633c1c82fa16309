//! `chio key new`: a fresh key in a file of its own.

use std::path::PathBuf;

use anyhow::Result;
use chio_core::crypto::Keypair;
use serde_json::json;

use crate::io::Io;

const HELP: &str = "\
The key file holds the secret: 64 hex digits and a newline, readable by its owner only. The secret
is never printed. Whoever has the file can sign as this key.

Example:
  chio key new --out authority.key";

/// Make an Ed25519 key
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The key file to make
    #[arg(long, value_name = "FILE", default_value = "chio.key")]
    out: PathBuf,
    /// Replace the file if it exists; the key in it is lost
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let key = Keypair::generate();
    io.write_key(&args.out, &key, args.force)?;
    let path = args.out.display();
    if args.json {
        io.json(&json!({"public_key": key.public_key(), "key_file": path.to_string()}))?;
    } else {
        io.field("public key", key.public_key())?;
        io.field("secret in", path)?;
    }
    Ok(())
}
