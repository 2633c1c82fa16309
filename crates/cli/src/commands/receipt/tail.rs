//! `chio receipt tail`: receipts as they are signed.

use std::time::Duration;

use anyhow::Result;
use chio_kernel::store::{ReceiptQuery, SharedStore};

use super::filter::Filter;
use super::row;
use crate::io::Io;
use crate::store_args::{StoreArgs, block_on};

/// How often the store is asked.
const BEAT: Duration = Duration::from_millis(200);
/// How many are read at once.
const PAGE: usize = 500;

const HELP: &str = "\
Shows the last receipts, then each new one as it becomes durable, until you stop it.

Example:
  chio receipt tail --outcome deny";

/// Follow the receipts of a store
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Begin with this many that are there already
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=500))]
    last: u32,
    /// End after this many
    #[arg(long)]
    count: Option<u64>,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON, one line each
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    block_on(async {
        let store = args.store.open_existing(io).await?.shared();
        let query = args.filter.query(io, PAGE)?;
        follow(args, io, &store, query).await
    })
}

async fn follow(
    args: &Args,
    io: &mut Io<'_>,
    store: &SharedStore,
    mut query: ReceiptQuery,
) -> Result<()> {
    // The place to begin is the newest receipt of all, also of those that do not match.
    let everything = ReceiptQuery { newest_first: true, limit: 1, ..ReceiptQuery::default() };
    let newest = store.query(&everything).await?.pop();
    query.limit = usize::try_from(args.last)?;
    let mut rows = if query.limit == 0 { Vec::new() } else { store.query(&query).await? };
    rows.reverse();
    (query.newest_first, query.limit) = (false, PAGE);
    query.cursor = Some(newest.map_or(0, |row| row.cursor));
    let (mut shown, columns) = (0, row::columns());
    if !args.json {
        columns.head(io)?;
    }
    loop {
        for row in &rows {
            if args.json {
                let line = serde_json::to_string(&row::document(row))?;
                io.bytes(line.as_bytes())?;
                io.bytes(b"\n")?;
            } else {
                columns.row(io, row::row(row))?;
            }
            query.cursor = query.cursor.max(Some(row.cursor));
            shown += 1;
            if args.count.is_some_and(|count| shown >= count) {
                return Ok(());
            }
        }
        io.flush()?;
        if rows.len() < PAGE {
            tokio::time::sleep(BEAT).await;
        }
        rows = store.query(&query).await?;
    }
}
