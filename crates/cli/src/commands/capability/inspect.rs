//! `chio capability inspect`: a token in words.

use std::path::PathBuf;

use anyhow::Result;
use chio_core::capability::CapabilityToken;
use chio_kernel::store::Spent;
use serde::Serialize;
use serde_json::{Value, json};

use super::{TOKEN, beside, view};
use crate::io::Io;
use crate::store_args::StoreArgs;

const HELP: &str = "\
Shows what a token says, and what the store beside it knows: whether it was revoked, and how much of
it is spent. Whether it holds is for `chio capability verify` to tell.

Example:
  chio capability inspect token.json";

/// Show what a token says
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The token
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
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
    /// Whether it was revoked, and what was spent of each grant; none where no store was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spent: Option<Vec<Value>>,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let token: CapabilityToken = io.read_json(&args.file, TOKEN)?;
    let known = beside::look(io, &args.store, &args.file, &token)?;
    if args.json {
        let spent = |it: &Spent| json!({"invocations": it.invocations, "units": it.units});
        io.json(&Inspected {
            token: &token,
            hash: token.hash()?,
            scope_hash: token.scope.hash()?,
            delegation_depth: token.delegation_chain.len(),
            unsupported_profile: token.unsupported_profile(),
            revoked: known.as_ref().map(|known| known.revoked.is_some()),
            spent: known.as_ref().map(|known| known.spent.iter().map(spent).collect()),
        })?;
    } else {
        view::show(io, &token)?;
        if let Some(known) = &known {
            view::show_known(io, &token, known)?;
        }
    }
    Ok(())
}
