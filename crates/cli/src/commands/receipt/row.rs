//! One receipt on one line.

use anyhow::{Context, Error, Result};
use chio_core::receipt::LoggedReceipt;
use chio_kernel::store::ReceiptRow;
use serde_json::{Value, json};

use crate::date::utc;
use crate::receipt_summary::Summary;

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

/// A row for people. One that cannot be read hides no others: whether the log holds is for
/// `chio log audit` to tell.
pub(super) fn line(row: &ReceiptRow) -> String {
    let receipt = match read(row) {
        Ok(receipt) => receipt,
        Err(error) => return unreadable(&error),
    };
    let Summary { verdict, what, note } = Summary::of(&receipt);
    let (time, id) = (utc(receipt.timestamp()), receipt.id());
    let indent = if matches!(receipt, LoggedReceipt::Child(_)) { "  " } else { "" };
    let what = format!("{indent}{what}");
    format!("{time}  {verdict:<10}  {what:<24}  {id}  {note}")
}

/// The line of a row that cannot be read.
pub(super) fn unreadable(error: &Error) -> String {
    let blank = "";
    format!("{blank:23}  unreadable  {error:#}")
}
