//! What receipts and results say about calls, as tests compare it.

use chio_core::message::ToolCallResult;
use chio_core::receipt::{ChioReceipt, Decision};
use serde_json::Value;

/// Of the receipts that are of calls: of which tool each is, and how the call ended.
#[must_use]
pub fn calls(receipts: &[Value]) -> Vec<(String, String)> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let of_call = |receipt: &Value| {
        let tool = receipt.get("tool_name")?;
        Some((text(Some(tool)), text(receipt.pointer("/decision/verdict"))))
    };
    receipts.iter().filter_map(of_call).collect()
}

/// Checks that receipts are of exactly these calls.
///
/// # Panics
/// When they are not.
#[track_caller]
pub fn check_calls(receipts: &[Value], expected: &[(&str, &str)]) {
    let found = calls(receipts);
    let found: Vec<_> = found.iter().map(|(tool, end)| (tool.as_str(), end.as_str())).collect();
    assert_eq!(found, expected);
}

/// The guard that a receipt says has denied.
///
/// # Panics
/// When none has.
#[must_use]
#[track_caller]
pub fn denied_by(receipt: &ChioReceipt) -> &str {
    denial(receipt).0
}

/// The reason of a receipt that denies in the kernel's name.
///
/// # Panics
/// When it does not.
#[must_use]
#[track_caller]
pub fn reason(receipt: &ChioReceipt) -> &str {
    let (guard, reason) = denial(receipt);
    assert_eq!(guard, "kernel", "{reason}");
    reason
}

/// Who has denied, and why.
#[track_caller]
fn denial(receipt: &ChioReceipt) -> (&str, &str) {
    let denial = match &receipt.decision {
        Some(Decision::Deny { guard, reason }) => Ok((guard.as_str(), reason.as_str())),
        other => Err(other),
    };
    denial.expect("a denial")
}

/// The result of a call as it is on the wire.
///
/// # Panics
/// When it cannot be written.
#[must_use]
pub fn written(result: &ToolCallResult) -> Value {
    serde_json::to_value(result).expect("a result")
}
