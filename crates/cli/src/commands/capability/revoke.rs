//! `chio capability revoke`: a token, and all that come from it, are valid no more.

use anyhow::Result;
use serde_json::json;

use super::find;
use crate::io::Io;
use crate::outcome::Refused;
use crate::store_args::{StoreArgs, block_on, complain_of_marks};

const HELP: &str = "\
Every kernel that shares the store denies the token, and every token that was handed on from it,
from then on. Callers that hold it are told. A token that no one here knows is refused, since its id
may be misspelt; --anyway revokes it before it comes.

Examples:
  chio capability revoke cap-019a2b3c-4d5e
  chio capability revoke cap-of-another-store --anyway";

/// Revoke a token and all that come from it
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The token's id, of which the beginning will do
    #[arg(value_name = "ID")]
    id: String,
    /// Revoke this very id although no token of it is known
    #[arg(long)]
    anyway: bool,
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
    let (newly, id) = block_on(async {
        let open = args.store.open_existing(io).await?;
        let store = open.shared();
        let id = if args.anyway { args.id.clone() } else { find::id(io, &store, &args.id).await? };
        let newly = store.revoke(&id, io.now).await?;
        complain_of_marks(io, &open.raise_marks().await?);
        Ok((newly, id))
    })?;
    if args.json {
        io.json(&json!({"capabilityId": id, "revoked": true, "newlyRevoked": newly}))?;
    } else if newly {
        io.field("revoked", &id)?;
    } else {
        io.field("revoked", format_args!("{id} (it was already)"))?;
    }
    Ok(())
}
