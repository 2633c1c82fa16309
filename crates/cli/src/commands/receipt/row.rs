//! One receipt on one line.

use anyhow::{Context, Error, Result};
use chio_core::receipt::{Execution, LoggedReceipt};
use chio_kernel::store::ReceiptRow;
use serde_json::{Value, json};

use crate::date::iso;
use crate::receipt_summary::Summary;
use crate::table::{Row, Table};
use crate::{csv, text};

/// The receipt of a row.
pub(super) fn read(row: &ReceiptRow) -> Result<LoggedReceipt> {
    LoggedReceipt::from_slice(&row.body)
        .with_context(|| format!("entry {} of {} cannot be read as a receipt", row.seq, row.log_id))
}

/// A row for scripts. One that cannot be read says why in place of its receipt.
pub(super) fn document(row: &ReceiptRow) -> Value {
    let (cursor, log_id, seq) = (row.cursor, &row.log_id, row.seq);
    match read(row) {
        Ok(receipt) => {
            json!({"cursor": cursor, "log_id": log_id, "seq": seq, "receipt": receipt})
        }
        Err(error) => {
            let why = format!("{error:#}");
            json!({"cursor": cursor, "log_id": log_id, "seq": seq, "receipt": null,
                "unreadable": why})
        }
    }
}

/// The columns of a list of receipts.
pub(super) const HEADS: [&str; 4] = ["TIME", "VERDICT", "RECEIPT", "WHAT"];
/// Which of them is the verdict.
pub(super) const VERDICT: usize = 1;

/// The columns of receipts that come one after another.
pub(super) fn columns() -> Table {
    let widths = [iso(0).chars().count(), 10, 13, 0];
    Table::fixed(&HEADS, VERDICT, widths)
}

/// A row for people. One that cannot be read hides no others: whether the log holds is for
/// `chio log audit` to tell.
pub(super) fn row(found: &ReceiptRow) -> Row {
    let receipt = match read(found) {
        Ok(receipt) => receipt,
        Err(error) => return unreadable(&error),
    };
    let Summary { verdict, what, note } = Summary::of(&receipt);
    let indent = if matches!(receipt, LoggedReceipt::Child(_)) { "  " } else { "" };
    let (time, id) = (iso(receipt.timestamp()), text::short_id(receipt.id()));
    Row { cells: vec![time, verdict.to_owned(), id, format!("{indent}{what}")], note }
}

/// The row of an entry that cannot be read.
pub(super) fn unreadable(error: &Error) -> Row {
    let cells = ["", "unreadable", "", ""].map(str::to_owned).to_vec();
    Row { cells, note: format!("{error:#}") }
}

/// The name of who called, where it has one.
pub(crate) fn principal_of(found: &ReceiptRow) -> Option<String> {
    Some(read(found).ok()?.principal()?.name.into_owned())
}

/// The columns of a table for spreadsheets.
pub(super) const CSV: [&str; 11] = [
    "time",
    "verdict",
    "what",
    "reason",
    "principal",
    "receipt_id",
    "request_id",
    "capability_id",
    "subject",
    "execution",
    "policy_hash",
];

/// A row for spreadsheets. One that cannot be read has its reason alone.
pub(super) fn csv(found: &ReceiptRow) -> String {
    let receipt = match read(found) {
        Ok(receipt) => receipt,
        Err(error) => {
            let why = format!("{error:#}");
            let fields = CSV.map(|name| match name {
                "verdict" => "unreadable",
                "reason" => &*why,
                _ => "",
            });
            return csv::line(fields);
        }
    };
    let (verdict, what, reason) = Summary::parts(&receipt);
    let (time, principal) = (iso(receipt.timestamp()), receipt.principal());
    let (capability, subject, policy) = match &receipt {
        LoggedReceipt::Call(call) => {
            let subject =
                call.metadata.as_ref().and_then(|it| it.pointer("/attribution/subject_key"));
            (call.capability_id.as_str(), subject.and_then(Value::as_str), &call.policy_hash)
        }
        LoggedReceipt::Child(child) => ("", None, &child.policy_hash),
    };
    csv::line([
        time.as_str(),
        verdict,
        &what,
        &reason,
        principal.as_ref().map_or("", |principal| &principal.name),
        receipt.id(),
        receipt.request_id().unwrap_or_default(),
        capability,
        subject.unwrap_or_default(),
        receipt.execution().map_or("", Execution::name),
        policy,
    ])
}
