//! `chio manifest sign`: a tool server's key under its manifest.

use std::path::PathBuf;

use anyhow::Result;
use chio_core::manifest::{MANIFEST_SCHEMA, ToolManifest};
use chio_core::strict;
use serde_json::{Value, json};

use crate::files::{Out, unreadable};
use crate::io::Io;
use crate::outcome::Refused;

const HELP: &str = "\
The smallest manifest:
  {\"server_id\": \"files\", \"name\": \"Files\", \"version\": \"1.0.0\", \"tools\": [{\"name\": \"read_file\",
    \"description\": \"Reads a file\", \"input_schema\": {\"type\": \"object\"}, \"has_side_effects\": false}]}
The members schema and public_key are filled in when they are missing.

Example:
  chio manifest sign manifest.json --key server.key --out manifest.signed.json";

/// Sign a tool server's manifest
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The manifest, not signed yet
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Key file of the tool server, who signs
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    #[command(flatten)]
    out: Out,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    const WHAT: &str = "a tool manifest";
    let mut written: Value = io.read_json(&args.file, WHAT)?;
    let key = io.read_key(&args.key)?;
    if let Value::Object(members) = &mut written {
        members.entry("schema").or_insert(json!(MANIFEST_SCHEMA));
        members.entry("public_key").or_insert(json!(key.public_key()));
    }
    let manifest: ToolManifest =
        strict::from_value(written).map_err(|error| unreadable(WHAT, &error))?;
    let signed = manifest.signed(&key).map_err(Refused::from)?;
    args.out.write(io, &signed, ("manifest of", &signed.manifest.server_id))
}
