//! `chio receipt trace`: all receipts of one act, as the tree that they make.

mod exports;
mod look_up;
mod tree;

use std::path::PathBuf;

use anyhow::{Error, Result};
use chio_kernel::store::ReceiptRow;
use serde_json::{Value, json};

use super::row;
use crate::date::iso;
use crate::io::Io;
use crate::receipt_summary::Summary;
use crate::store_args::{StoreArgs, block_on};
use crate::table::{Row, Table};
use crate::text;
use look_up::Act;
use tree::{Found, Line, lines};

/// How many receipts of one trace are drawn.
const MOST: usize = 10_000;

const HELP: &str = "\
One act of an agent, with all calls that were made for it and all questions inside of them, over all
protocols and kernels of the store: each below the one that it was made for. A call that is named by
others and has no receipt here, such as one of another organisation, is a line of its own. Entries
of the trace that cannot be read as receipts stand at the end.

In a store, a call that only its caller says to be part of an act begins one of its own; with
--bundle it is drawn where the caller says.

With --bundle, receipts are taken from exports (`chio receipt export`), also those of other
organisations: calls that were made for one another are one tree. `chio receipt verify --bundle`
tells whether an export holds.

The act is named by its trace, or by the receipt (its beginning will do) or the request of any call
in it.

Examples:
  chio receipt trace 109bfb253f65
  chio receipt trace req-019ace00-7d1c-7b2e-9f0a-3b1f6f3a2c11 --json
  chio receipt trace 109bfb253f65 --bundle ours.json --bundle theirs.json";

/// Show all receipts of one act as a tree
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The trace, or a receipt or request in it
    id: String,
    /// Look in this export in place of the store; can be repeated, for several organisations
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "store"])]
    bundle: Vec<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    if !args.bundle.is_empty() {
        let all = exports::read(io, &args.bundle)?;
        let (trace_id, found) = exports::act(all, &args.id)?;
        return tell(args, io, trace_id.as_deref(), (&found, &[], false));
    }
    let (trace_id, rows, cut) = block_on(async {
        let store = args.store.open_existing(io).await?.shared();
        match look_up::act_of(&store, &args.id).await? {
            Act::Trace(trace_id) => {
                let (rows, cut) = look_up::receipts(&store, &trace_id, MOST).await?;
                Ok((Some(trace_id), rows, cut))
            }
            Act::Alone(row) => Ok((None, vec![*row], false)),
        }
    })?;
    let (found, unread) = read(rows);
    tell(args, io, trace_id.as_deref(), (&found, &unread, cut))
}

/// Prints receipts as a tree, what could not be read, and whether there is more.
fn tell(
    args: &Args,
    io: &mut Io<'_>,
    trace_id: Option<&str>,
    (found, unread, cut): (&[Found], &[(ReceiptRow, Error)], bool),
) -> Result<()> {
    let lines = lines(found);
    if args.json {
        let unread = unread.iter().map(unread_document);
        let receipts: Vec<Value> = lines.iter().map(document).chain(unread).collect();
        return io.json(&json!({"traceId": trace_id, "receipts": receipts, "cut": cut}));
    }
    io.field("trace", trace_id.unwrap_or("none: it was part of no call"))?;
    let rows = lines.iter().map(drawn).chain(unread.iter().map(|(_, it)| row::unreadable(it)));
    let rows: Vec<Row> = rows.collect();
    Table::of(&row::HEADS, row::VERDICT, &rows).write(io, rows)?;
    if cut {
        io.say(format_args!(
            "cut: the trace has more than {MOST} receipts; list them with --trace"
        ))?;
    }
    Ok(())
}

/// The receipts of the rows, and the rows that cannot be read: where they stand is unknown.
fn read(rows: Vec<ReceiptRow>) -> (Vec<Found>, Vec<(ReceiptRow, Error)>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for row in rows {
        match row::read(&row) {
            Ok(receipt) => found.push(Found::new(receipt, row.log_id)),
            Err(error) => unread.push((row, error)),
        }
    }
    (found, unread)
}

/// A row that cannot be read, for scripts.
fn unread_document((row, error): &(ReceiptRow, Error)) -> Value {
    let why = format!("{error:#}");
    json!({"depth": 0, "logId": row.log_id, "seq": row.seq, "receipt": null, "unreadable": why})
}

/// A line for scripts. Lines stand in the order of the tree, and say how deep they are in it.
fn document(line: &Line<'_>) -> Value {
    let depth = line.depth;
    match line.found {
        Some(found) => json!({
            "depth": depth,
            "requestId": found.request_id,
            "parentRequestId": found.parent.as_ref().map(|parent| &parent.request_id),
            "parentIsClaim": found.parent.as_ref().is_some_and(|parent| parent.is_claim),
            "hops": found.hops,
            "logId": found.log_id,
            "receipt": found.receipt,
        }),
        None => json!({"depth": depth, "requestId": line.request_id, "receipt": null}),
    }
}

/// A line for people.
fn drawn(line: &Line<'_>) -> Row {
    let branch = &line.branch;
    let Some(found) = line.found else {
        let id = line.request_id;
        let what = if id.starts_with("sess-") { "session" } else { "not here" };
        let cells = vec![String::new(), what.to_owned(), String::new(), format!("{branch}{id}")];
        return Row { cells, note: String::new() };
    };
    let summary = Summary::of(&found.receipt);
    let claim = match &found.parent {
        Some(parent) if parent.is_claim => "made for it as the caller says",
        _ => "",
    };
    let notes = [found.hops.join(" > "), claim.to_owned(), summary.note];
    let notes: Vec<String> = notes.into_iter().filter(|note| !note.is_empty()).collect();
    let cells = vec![
        iso(found.receipt.timestamp()),
        summary.verdict.to_owned(),
        text::short_id(found.receipt.id()),
        format!("{branch}{}", summary.what),
    ];
    Row { cells, note: notes.join("; ") }
}
