//! `chio kernel stop` and `resume`: the emergency stop of a whole store.

use anyhow::Result;
use serde_json::json;

use crate::io::Io;
use crate::outcome::Refused;
use crate::store_args::{StoreArgs, block_on, complain_of_marks};

const STOP_HELP: &str = "\
Takes effect on every running kernel of the store within a moment, and stays until `chio kernel
resume`. Calls are denied with a signed receipt that gives the reason.

Example:
  chio kernel stop --reason 'agent 7 writes where it should not'";

const RESUME_HELP: &str = "\
Example:
  chio kernel resume";

/// Deny every call on every kernel of the store, at once
#[derive(Debug, clap::Args)]
#[command(after_help = STOP_HELP)]
pub(crate) struct StopArgs {
    /// Why, for receipts and people
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// End an emergency stop
#[derive(Debug, clap::Args)]
#[command(after_help = RESUME_HELP)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn stop(args: &StopArgs, io: &mut Io<'_>) -> Result<()> {
    if args.reason.trim().is_empty() {
        return Err(Refused::new("expected a reason, found a blank").into());
    }
    block_on(async {
        let store = args.store.open_existing(io).await?;
        store.shared().stop(Some(args.reason.clone())).await?;
        complain_of_marks(io, &store.raise_marks().await?);
        Ok(())
    })?;
    if args.json {
        io.json(&json!({"stopped": args.reason}))?;
    } else {
        io.say("stopped: every call is denied until `chio kernel resume`")?;
    }
    Ok(())
}

pub(super) fn resume(args: &ResumeArgs, io: &mut Io<'_>) -> Result<()> {
    block_on(async { Ok(args.store.open_existing(io).await?.shared().stop(None).await?) })?;
    if args.json {
        io.json(&json!({"stopped": null}))?;
    } else {
        io.say("resumed")?;
    }
    Ok(())
}
