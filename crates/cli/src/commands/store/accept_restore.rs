//! `chio store accept-restore`: kernels go on with a store that was put back to an earlier state.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use chio_core::mark::MarkedCheckpoint;
use chio_kernel::{
    ChioKernel, Clock, KernelConfig, KernelParts, Pipeline, SystemClock, SystemRandomness,
};
use chio_store::{OpenStore, Restore, Slot};
use serde_json::{Value, json};

use crate::io::Io;
use crate::store_args::{StoreArgs, block_on, refused};

/// The tool that the receipt names.
const TOOL: &str = "accept_restore";

const HELP: &str = "\
Kernels refuse to start on a store that is behind what they have signed: the marks beside their keys
say so. When you have put back a backup on purpose, this command accepts it. Stop every process that
serves from this data directory first.

The logs of its kernels are closed as they stand and stay in the store, for audits. Kernels go on
with new keys and new logs, so that no log ever has two continuations. A receipt of `chio_control` in
the first new log names the closed logs, and what the store has no more.

Whatever was revoked or spent after the backup was made is valid again: revoke those tokens once
more. Kernels in other data directories accept the restore there.

A store that is not behind is refused, unless it is a copy of one that is in use on this machine.
With --anyway its logs are closed as well: say so for a copy whose original runs elsewhere.

Example:
  chio store accept-restore --data .chio";

/// Go on with a store that was put back to an earlier state
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Close the logs also of a store that is neither behind its kernels nor a copy of one in use
    #[arg(long)]
    anyway: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let (report, receipt) = block_on(async {
        let store = args.store.open_existing(io).await?;
        let (restore, slot) = store.begin_restore(args.anyway).await.map_err(refused)?;
        accept(&store, restore, slot).await
    })?;
    if args.json {
        return io.json(&json!({"receipt": receipt, "restore": report}));
    }
    let texts = |member: &str| {
        let found = report.get(member).and_then(Value::as_array).into_iter().flatten();
        found.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    io.list("missing", texts("missing"))?;
    let logs = report.get("logs").and_then(Value::as_array).into_iter().flatten();
    io.list("closed", logs.filter_map(|log| log.get("log_id")?.as_str()))?;
    io.field("receipt", receipt)?;
    io.say("kernels start with new keys and new logs from now on")
}

/// Writes the receipt, and then closes the logs. With what the receipt says, and its id.
async fn accept(store: &OpenStore, restore: Restore, slot: Slot) -> Result<(Value, String)> {
    let report = document(store, &restore).await?;
    let kernel = ChioKernel::start(KernelParts {
        config: KernelConfig::default(),
        key: slot.key,
        ledger: slot.ledger,
        store: store.shared(),
        clock: Arc::<SystemClock>::default() as Arc<dyn Clock>,
        randomness: Arc::<SystemRandomness>::default(),
        pipeline: Pipeline::none(),
    })
    .await?;
    let receipt = kernel.record_control(TOOL, report.clone()).await?;
    kernel.drain(Duration::ZERO).await?;
    restore.close_logs().await?;
    Ok((report, receipt))
}

/// What is accepted: the store as it is, and what it had when its kernels left it.
async fn document(store: &OpenStore, restore: &Restore) -> Result<Value> {
    let shared = store.shared();
    let (store_id, numbers) = (shared.store_id().await?, shared.numbers().await?);
    let mut logs = Vec::new();
    for (log_id, last) in &restore.logs {
        let last = last.as_ref().map(MarkedCheckpoint::of).transpose()?;
        logs.push(json!({"checkpoint": last, "log_id": log_id}));
    }
    let missing = restore.regressions.iter().map(ToString::to_string);
    Ok(json!({
        "logs": logs,
        "marks": restore.marks,
        "missing": missing.collect::<Vec<_>>(),
        "store": numbers,
        "store_id": store_id,
    }))
}
