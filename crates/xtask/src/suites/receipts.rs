//! One receipt for each call, and one for each nested question or reading that is asked for: no
//! more, no less.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// How often each was seen: a tool and the verdict, or what a child receipt is about and its end.
pub(crate) type Tally = BTreeMap<(String, String), usize>;

/// What the receipts do not agree with.
pub(crate) fn problems(receipts: &[Value], expected: &Tally) -> Vec<String> {
    let seen = tally(receipts, |kind| expected.keys().any(|(wanted, _)| wanted == kind));
    let keys: BTreeSet<&(String, String)> = seen.keys().chain(expected.keys()).collect();
    let number =
        |tally: &Tally, key: &(String, String)| tally.get(key).copied().unwrap_or_default();
    let differs = keys.into_iter().filter(|key| number(&seen, key) != number(expected, key));
    let line = |key: &(String, String)| {
        let (found, wanted) = (number(&seen, key), number(expected, key));
        format!("receipts of {} {}: expected {wanted}, found {found}", key.0, key.1)
    };
    differs.map(line).collect()
}

/// Counts what is expected.
pub(crate) fn count(expected: &[(&str, &str)]) -> Tally {
    let mut tally = Tally::new();
    for (what, how) in expected {
        *tally.entry(((*what).to_owned(), (*how).to_owned())).or_default() += 1;
    }
    tally
}

/// Child receipts count only if they are of a wanted kind: a server may ask and a client may list
/// as often as it likes.
fn tally(receipts: &[Value], is_wanted: impl Fn(&str) -> bool) -> Tally {
    let text = |receipt: &Value, path: &str| {
        receipt.pointer(path).and_then(Value::as_str).map(str::to_owned)
    };
    let mut tally = Tally::new();
    for receipt in receipts {
        let key = match (text(receipt, "/tool_name"), text(receipt, "/operation_kind")) {
            (Some(tool), _) => (tool, text(receipt, "/decision/verdict").unwrap_or_default()),
            (None, Some(kind)) if !is_wanted(&kind) => continue,
            (None, Some(kind)) => {
                (kind, text(receipt, "/terminal_state/state").unwrap_or_default())
            }
            (None, None) => ("something unreadable".to_owned(), String::new()),
        };
        *tally.entry(key).or_default() += 1;
    }
    tally
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{count, problems};

    fn call(tool: &str, verdict: &str) -> Value {
        json!({"tool_name": tool, "decision": {"verdict": verdict}})
    }

    #[test]
    fn a_receipt_too_few_or_too_many_is_found() {
        let receipts = [
            call("echo", "allow"),
            call("echo", "allow"),
            call("slow", "allow"),
            json!({"operation_kind": "list_tools", "terminal_state": {"state": "completed"}}),
            json!({"operation_kind": "create_message", "terminal_state": {"state": "completed"}}),
        ];
        let expected = [("echo", "allow"), ("slow", "cancelled"), ("create_message", "completed")];
        assert_eq!(
            problems(&receipts, &count(&expected)),
            [
                "receipts of echo allow: expected 1, found 2",
                "receipts of slow allow: expected 0, found 1",
                "receipts of slow cancelled: expected 1, found 0",
            ]
        );
        let expected = [
            ("echo", "allow"),
            ("echo", "allow"),
            ("slow", "allow"),
            ("create_message", "completed"),
        ];
        assert!(problems(&receipts, &count(&expected)).is_empty());
    }
}
