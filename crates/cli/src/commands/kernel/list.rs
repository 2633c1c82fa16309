//! `chio kernel list`: the kernels of a store and their logs.

use anyhow::Result;
use chio_kernel::store::LogSummary;
use serde_json::json;

use crate::io::Io;
use crate::store_args::{StoreArgs, block_on};
use crate::text;

const HELP: &str = "\
Example:
  chio kernel list --data .chio";

/// List the kernels of a store and their logs
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let (authority, id, logs, revocations) = block_on(async {
        let open = args.store.open_existing(io).await?;
        let (authority, store) = (open.authority_public().await?, open.shared());
        let (id, logs) = (store.store_id().await?, store.logs().await?);
        Ok((authority, id, logs, store.revoked_since(u64::MAX).await?))
    })?;
    let stopped = revocations.stopped;
    if args.json {
        let kernels: Vec<_> = logs.iter().map(document).collect();
        io.json(&json!({
            "store_id": id, "authority": authority, "stopped": stopped, "kernels": kernels,
        }))?;
        return Ok(());
    }
    io.field("store", id)?;
    let own = authority;
    if let Some(key) = &own {
        io.field("authority", key)?;
    }
    if let Some(reason) = stopped {
        io.field("STOPPED", reason)?;
    }
    for log in logs {
        io.field("kernel", &log.kernel_key)?;
        io.field("", text::short_id(&log.log_id))?;
        if log.certificates.is_empty() {
            io.field("", "not certified")?;
        }
        for certificate in &log.certificates {
            let authority = &certificate.authority;
            if Some(authority) == own.as_ref() {
                io.field("", "certified by the authority of the store")?;
            } else {
                io.field("", "certified by another authority:")?;
                io.field("", authority)?;
            }
        }
        io.field("", format_args!("{} receipts, {} checkpoints", log.entries, log.checkpoints))?;
    }
    Ok(())
}

fn document(log: &LogSummary) -> serde_json::Value {
    json!({
        "kernel_key": log.kernel_key,
        "log_id": log.log_id,
        "certificates": log.certificates,
        "receipts": log.entries,
        "checkpoints": log.checkpoints,
        "open_intents": log.open_intents,
    })
}
