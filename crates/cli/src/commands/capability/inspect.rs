//! `chio capability inspect`: a token in words.

use std::path::PathBuf;

use anyhow::Result;
use chio_core::capability::CapabilityToken;
use serde::Serialize;

use super::{TOKEN, view};
use crate::io::Io;

const HELP: &str = "\
Shows what a token says. Whether that holds is for `chio capability verify` to tell.

Example:
  chio capability inspect token.json";

/// Show what a token says
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The token
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A token, and what follows from it.
#[derive(Serialize)]
struct Inspected<'a> {
    #[serde(flatten)]
    token: &'a CapabilityToken,
    hash: String,
    scope_hash: String,
    delegation_depth: usize,
    unsupported_profile: Option<&'static str>,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let token: CapabilityToken = io.read_json(&args.file, TOKEN)?;
    if args.json {
        io.json(&Inspected {
            token: &token,
            hash: token.hash()?,
            scope_hash: token.scope.hash()?,
            delegation_depth: token.delegation_chain.len(),
            unsupported_profile: token.unsupported_profile(),
        })?;
    } else {
        view::show(io, &token)?;
    }
    Ok(())
}
