//! `chio log consistency`: the proof that one checkpoint extends another.

use anyhow::Result;
use chio_core::checkpoint::KernelCheckpoint;
use chio_core::merkle::ConsistencyProof;
use chio_kernel::proof;
use chio_kernel::store::SharedStore;
use serde::Serialize;

use crate::files::Out;
use crate::io::Io;
use crate::outcome::{Outcome, Refused};
use crate::store_args::{StoreArgs, block_on, refused};

const HELP: &str = "\
Writes both checkpoints and the proof that the later one's log begins with the earlier one's.
Whoever kept the earlier checkpoint can check that nothing before it was changed.

Example:
  chio log consistency --from 3 --to 120";

/// Prove that one checkpoint extends another
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// The earlier checkpoint, by number
    #[arg(long, value_name = "NUMBER")]
    from: u64,
    /// The later checkpoint, by number [default: the last]
    #[arg(long, value_name = "NUMBER")]
    to: Option<u64>,
    /// The log, of whose name the beginning will do [default: the only one]
    #[arg(long, value_name = "LOG_ID")]
    log: Option<String>,
    #[command(flatten)]
    out: Out,
}

#[derive(Serialize)]
struct Document {
    log_id: String,
    from: KernelCheckpoint,
    to: KernelCheckpoint,
    proof: ConsistencyProof,
    /// Whether the proof holds, as we see it.
    holds: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let document = block_on(async {
        let store = args.store.open_existing(io).await?.shared();
        prove(&store, args).await
    })?;
    args.out.write(io, &document, ("log", &document.log_id))?;
    Ok(Outcome::of(document.holds))
}

async fn prove(store: &SharedStore, args: &Args) -> Result<Document> {
    let logs = store.logs().await?;
    let log = match (&args.log, logs.as_slice()) {
        (Some(id), logs) => logs.iter().find(|log| log.log_id.starts_with(id)),
        (None, [only]) => Some(only),
        (None, _) => {
            let found = logs.len();
            let message = format!("expected --log, because the store has {found} logs");
            return Err(Refused::new(message).into());
        }
    };
    let unknown = || Refused::new("there is no log of that name: see `chio kernel list`");
    let log = log.ok_or_else(unknown)?;
    let to = args.to.unwrap_or(log.checkpoints);
    let read = async |number: u64| -> Result<KernelCheckpoint> {
        let found = store.checkpoints(&log.log_id, number, 1).await?.pop();
        found.filter(|found| found.body.checkpoint_seq == number).ok_or_else(|| {
            let most = log.checkpoints;
            Refused::new(format!("expected a checkpoint from 1 to {most}, found {number}")).into()
        })
    };
    let (from, to) = (read(args.from).await?, read(to).await?);
    let (first, last) = (from.body.checkpoint_seq, to.body.checkpoint_seq);
    if first > last {
        let message = format!("expected --from before --to, found {first} and {last}");
        return Err(Refused::new(message).into());
    }
    let proof = proof::consistency(&**store, &log.log_id, first, last).await.map_err(refused)?;
    let holds = to.extends(&from, &proof);
    Ok(Document { log_id: log.log_id.clone(), from, to, proof, holds })
}
