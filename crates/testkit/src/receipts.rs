//! What receipts say about calls, as tests compare it.

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
