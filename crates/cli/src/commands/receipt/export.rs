//! `chio receipt export`: receipts with all that is needed to verify them.

use std::time::{Duration, Instant};

use anyhow::Result;
use chio_core::bundle::ReceiptBundle;
use chio_kernel::proof;
use chio_kernel::store::{ReceiptQuery, ReceiptRow, SharedStore};

use super::filter::Filter;
use crate::files::Out;
use crate::io::Io;
use crate::outcome::Refused;
use crate::store_args::{StoreArgs, block_on, refused};
use crate::text;

/// How many receipts are read at once.
const PAGE: usize = 1000;
/// How long a running kernel may take to cover the newest receipts.
const PATIENCE: Duration = Duration::from_secs(2);

const HELP: &str = "\
A bundle holds receipts, the checkpoints over them, the proofs that tie them together, and the
authority's certificates. `chio receipt verify --bundle` needs nothing else but a public key.

Examples:
  chio receipt export --since 1d --out day.json
  chio receipt export --id 109bfb253f65d6aa1c843c3904f03cf423382305be3d917adae3db6e4833c83a
  chio receipt verify --bundle day.json --authority authority.key";

/// Write receipts with all that is needed to verify them
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// This receipt; can be repeated
    #[arg(long, value_name = "RECEIPT_ID")]
    id: Vec<String>,
    /// At most this many
    #[arg(long, default_value_t = 10_000)]
    limit: usize,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    out: Out,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let (bundle, more) = block_on(async {
        let store = args.store.open_existing(io).await?.shared();
        let query = args.filter.query(io, PAGE)?;
        let (rows, more) = gather(args, &store, query).await?;
        Ok((covered(&store, &rows).await?, more))
    })?;
    if bundle.entries.is_empty() {
        return Err(Refused::new("there is no such receipt").into());
    }
    let pending = bundle.entries.iter().filter(|entry| entry.inclusion.is_none()).count();
    let count = text::count(bundle.entries.len(), "receipt");
    args.out.write(io, &bundle, ("exported", &count))?;
    if pending > 0 {
        let pending = text::count(pending, "receipt");
        io.complain("warning", format_args!("{pending} not under a checkpoint yet"));
    }
    if more {
        let limit = args.limit;
        io.complain("warning", format_args!("there are more: only the newest {limit} are written"));
    }
    Ok(())
}

/// The receipts asked for, oldest first, and whether there are more than allowed.
async fn gather(
    args: &Args,
    store: &SharedStore,
    mut query: ReceiptQuery,
) -> Result<(Vec<ReceiptRow>, bool)> {
    let mut rows = Vec::new();
    for id in &args.id {
        let Some(row) = store.find(id).await? else {
            return Err(Refused::new(format!("there is no receipt `{id}` in the store")).into());
        };
        rows.push(row);
    }
    let mut more = false;
    while args.id.is_empty() {
        let page = store.query(&query).await?;
        let Some(last) = page.last() else { break };
        query.cursor = Some(last.cursor);
        rows.extend(page);
        more = rows.len() > args.limit;
        if more {
            break;
        }
    }
    rows.truncate(args.limit);
    rows.reverse();
    Ok((rows, more))
}

/// The bundle, once a running kernel has had time to cover the newest receipts.
async fn covered(store: &SharedStore, rows: &[ReceiptRow]) -> Result<ReceiptBundle> {
    let start = Instant::now();
    loop {
        let bundle = proof::bundle(&**store, rows).await.map_err(refused)?;
        let pending = bundle.entries.iter().any(|entry| entry.inclusion.is_none());
        if !pending || start.elapsed() > PATIENCE {
            return Ok(bundle);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
