//! One receipt on one line.

use anyhow::{Context, Result};
use chio_core::receipt::{Decision, LoggedReceipt, TerminalState};
use chio_kernel::store::ReceiptRow;
use serde_json::{Value, json};

use crate::date::utc;
use crate::text;

/// The receipt of a row.
pub(super) fn read(row: &ReceiptRow) -> Result<LoggedReceipt> {
    LoggedReceipt::from_slice(&row.body)
        .with_context(|| format!("entry {} of {} is not a receipt", row.seq, row.log_id))
}

/// A row for scripts.
pub(super) fn document(row: &ReceiptRow) -> Result<Value> {
    let receipt = read(row)?;
    Ok(json!({"cursor": row.cursor, "log_id": row.log_id, "seq": row.seq, "receipt": receipt}))
}

/// A row for people.
pub(super) fn line(row: &ReceiptRow) -> Result<String> {
    let receipt = read(row)?;
    let Summary { verdict, what, why } = Summary::of(&receipt);
    let (time, id) = (utc(receipt.timestamp()), receipt.id());
    let indent = if matches!(receipt, LoggedReceipt::Child(_)) { "  " } else { "" };
    let what = format!("{indent}{what}");
    Ok(format!("{time}  {verdict:<10}  {what:<24}  {id}  {why}"))
}

/// What a receipt says in short.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) verdict: &'static str,
    /// The tool, or the question.
    pub(super) what: String,
    /// Why it did not go well, if so.
    pub(super) why: String,
}

impl Summary {
    pub(super) fn of(receipt: &LoggedReceipt) -> Self {
        match receipt {
            LoggedReceipt::Call(receipt) => {
                let (verdict, why) = match &receipt.decision {
                    Some(Decision::Allow) => ("allow", String::new()),
                    Some(Decision::Deny { reason, guard }) => {
                        ("deny", format!("{guard}: {reason}"))
                    }
                    Some(Decision::Cancelled { reason }) => ("cancelled", reason.clone()),
                    Some(Decision::Incomplete { reason }) => ("incomplete", reason.clone()),
                    None => ("observed", String::new()),
                };
                let what = format!("{}/{}", receipt.tool_server, receipt.tool_name);
                Self { verdict, what, why }
            }
            LoggedReceipt::Child(child) => {
                let (verdict, why) = match &child.terminal_state {
                    TerminalState::Completed => ("completed", String::new()),
                    TerminalState::Cancelled { reason } => ("cancelled", reason.clone()),
                    TerminalState::Incomplete { reason } => ("incomplete", reason.clone()),
                };
                Self { verdict, what: text::words(&child.operation_kind), why }
            }
        }
    }
}
