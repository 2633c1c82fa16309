//! `chio kernel stop` and `resume`: the emergency stop of a whole store.

use anyhow::Result;

use crate::io::Io;
use crate::outcome::{Outcome, Refused};
use crate::store_args::{StoreArgs, block_on};

/// Deny every call on every kernel of the store, at once
#[derive(Debug, clap::Args)]
pub(crate) struct StopArgs {
    /// Why, for receipts and people
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    store: StoreArgs,
}

/// End an emergency stop
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    store: StoreArgs,
}

pub(super) fn stop(args: &StopArgs, io: &mut Io<'_>) -> Result<Outcome> {
    if args.reason.trim().is_empty() {
        return Err(Refused::new("expected a reason, found a blank").into());
    }
    let store = args.store.open_existing(io)?.shared();
    block_on(async { Ok(store.stop(Some(args.reason.clone())).await?) })?;
    io.say("stopped: every call is denied until `chio kernel resume`")?;
    Ok(Outcome::Well)
}

pub(super) fn resume(args: &ResumeArgs, io: &mut Io<'_>) -> Result<Outcome> {
    let store = args.store.open_existing(io)?.shared();
    block_on(async { Ok(store.stop(None).await?) })?;
    io.say("resumed")?;
    Ok(Outcome::Well)
}
