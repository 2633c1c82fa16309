//! `chio receipt list`: the receipts of a store or an export, by what they are about.

use anyhow::Result;
use chio_kernel::store::{ReceiptQuery, ReceiptRow};
use serde_json::{Value, json};

use super::filter::Filter;
use super::row;
use super::source::SourceArgs;
use crate::csv;
use crate::io::Io;
use crate::store_args::block_on;
use crate::table::{Row, Table};

const HELP: &str = "\
Newest first. When there is more, the last line says how to go on. The first digits of an id, as they
stand here, will do for `chio receipt show` and `chio receipt trace`. With --bundle, receipts are taken
from exports (`chio receipt export`) in place of the store.

Examples:
  chio receipt list --outcome deny --since 1h
  chio receipt list --capability cap-1 --tool read_file --json
  chio receipt list --since 2026-09-24 --format csv > receipts.csv
  chio receipt list --bundle day.json";

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
    source: SourceArgs,
    /// How they are printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", conflicts_with = "json")]
    format: Format,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How receipts are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// For scripts, as --json
    Json,
    /// For spreadsheets
    Csv,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let limit = usize::try_from(args.limit)?;
    let mut query = args.filter.query(io, limit)?;
    query.cursor = args.cursor;
    query.newest_first = !args.oldest_first;
    let (rows, more) = block_on(async {
        let source = args.source.open(io).await?;
        let rows = source.query(&query).await?;
        // Whether there is more is a question of its own: answers may be short.
        let after = ReceiptQuery { cursor: rows.last().map(|row| row.cursor), limit: 1, ..query };
        let more = !rows.is_empty() && !source.query(&after).await?.is_empty();
        Ok((rows, more))
    })?;
    let next = rows.last().filter(|_| more).map(|row| row.cursor);
    match args.format {
        Format::Text if !args.json => write(io, &rows, next),
        Format::Csv => {
            io.bytes(csv::line(row::CSV).as_bytes())?;
            rows.iter().try_for_each(|found| io.bytes(row::csv(found).as_bytes()))?;
            if let Some(cursor) = next {
                io.complain("more", format_args!("add --cursor {cursor}"));
            }
            Ok(())
        }
        Format::Text | Format::Json => {
            let receipts: Vec<Value> = rows.iter().map(row::document).collect();
            io.json(&json!({"receipts": receipts, "nextCursor": next}))
        }
    }
}

/// Writes rows for people.
fn write(io: &mut Io<'_>, rows: &[ReceiptRow], next: Option<u64>) -> Result<()> {
    if rows.is_empty() {
        return io.say("none");
    }
    let shown: Vec<Row> = rows.iter().map(row::row).collect();
    Table::of(&row::HEADS, row::VERDICT, &shown).write(io, shown)?;
    match next {
        Some(cursor) => io.say(format_args!("more: add --cursor {cursor}")),
        None => Ok(()),
    }
}
