//! `chio receipt list`: the receipts of a store, by what they are about.

use anyhow::Result;
use chio_kernel::store::ReceiptQuery;
use serde_json::{Value, json};

use super::filter::Filter;
use super::row;
use crate::io::Io;
use crate::store_args::{StoreArgs, block_on};

const HELP: &str = "\
Newest first. When there is more, the last line says how to go on.

Examples:
  chio receipt list --outcome deny --since 1h
  chio receipt list --capability cap-1 --tool read_file --json";

/// List receipts of a store
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// At most this many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Go on after this cursor
    #[arg(long)]
    cursor: Option<u64>,
    /// Oldest first
    #[arg(long)]
    oldest_first: bool,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let limit = usize::try_from(args.limit)?;
    let mut query = args.filter.query(io, limit)?;
    query.cursor = args.cursor;
    query.newest_first = !args.oldest_first;
    let (rows, more) = block_on(async {
        let store = args.store.open_existing(io).await?.shared();
        let rows = store.query(&query).await?;
        // Whether there is more is a question of its own: answers may be short.
        let after = ReceiptQuery { cursor: rows.last().map(|row| row.cursor), limit: 1, ..query };
        let more = !rows.is_empty() && !store.query(&after).await?.is_empty();
        Ok((rows, more))
    })?;
    let next = rows.last().filter(|_| more).map(|row| row.cursor);
    if args.json {
        let receipts: Vec<Value> = rows.iter().map(row::document).collect();
        return io.json(&json!({"receipts": receipts, "nextCursor": next}));
    }
    for row in &rows {
        io.say(row::line(row))?;
    }
    match next {
        Some(cursor) => io.say(format_args!("more: add --cursor {cursor}"))?,
        None if rows.is_empty() => io.say("none")?,
        None => {}
    }
    Ok(())
}
