//! `chio capability revoke`: a token, and all that come from it, are valid no more.

use anyhow::Result;
use serde_json::json;

use crate::io::Io;
use crate::outcome::Refused;
use crate::store_args::{StoreArgs, block_on, complain_of_marks};

const HELP: &str = "\
Every kernel that shares the store denies the token, and every token that was handed on from it,
from then on. Callers that hold it are told.

Example:
  chio capability revoke cap-019a2b3c-4d5e-7f60-8123-456789abcdef";

/// Revoke a token and all that come from it
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The token's id
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    if args.id.trim().is_empty() {
        return Err(Refused::new("expected the id of a token, found a blank").into());
    }
    let (newly, known) = block_on(async {
        let open = args.store.open_existing(io).await?;
        let store = open.shared();
        let known = !store.tokens(std::slice::from_ref(&args.id)).await?.is_empty();
        let newly = store.revoke(&args.id, io.now).await?;
        complain_of_marks(io, &open.raise_marks().await?);
        Ok((newly, known))
    })?;
    if !known {
        io.complain("note", "no token of this id is known here; should one come, it is revoked");
    }
    if args.json {
        io.json(&json!({"capabilityId": args.id, "revoked": true, "newlyRevoked": newly}))?;
    } else if newly {
        io.field("revoked", &args.id)?;
    } else {
        io.field("revoked", format_args!("{} (it was already)", args.id))?;
    }
    Ok(())
}
