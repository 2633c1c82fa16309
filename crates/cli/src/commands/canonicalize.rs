//! `chio canonicalize`: JSON in the one byte form that is signed.

use std::path::PathBuf;

use anyhow::Result;
use chio_core::registry::ErrorCode;
use chio_core::{canonical, strict};
use serde_json::Value;

use crate::files::unreadable;
use crate::io::Io;
use crate::outcome::Refused;

const HELP: &str = "\
The output is exactly the canonical form: no newline follows it. Texts with a member twice in one
object, or with more than 96 levels of nesting, are refused.

Example:
  echo '{\"b\": 1.0, \"a\": [true, \"\\u00e9\"]}' | chio canonicalize
  {\"a\":[true,\"é\"],\"b\":1}";

/// Write JSON in its canonical form (RFC 8785), the bytes that are hashed and signed
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The JSON text
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Refuse numbers that would not stay as they are written, such as 1.0 or 9007199254740993
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    const WHAT: &str = "JSON with one canonical form";
    let text = io.read(&args.file)?;
    let bytes = if args.strict {
        strict::canonicalize(&text).map_err(|error| unreadable(WHAT, &error))?
    } else {
        let value: Value = strict::from_slice(&text).map_err(|error| unreadable(WHAT, &error))?;
        canonical::to_vec(&value).map_err(|error| {
            Refused::with_code(error.to_string(), ErrorCode::InvalidRequestShape)
        })?
    };
    io.bytes(&bytes)
}
