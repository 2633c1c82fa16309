//! The messages of a conversation: JSON-RPC 2.0, one message on a line.

use chio_core::strict::{self, StrictError};
use chio_net::jsonrpc::{Envelope, RpcError};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::McpError;

/// The longest words of a server's error that are passed on.
const MAX_WORDS: usize = 4096;

/// The version of the protocol that we offer.
pub(crate) const VERSION: &str = "2025-11-25";
/// The versions in which everything that we say means the same.
pub(crate) const VERSIONS: [&str; 4] = [VERSION, "2025-06-18", "2025-03-26", "2024-11-05"];

/// What a server says.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    /// It asks something; the id is for it alone to understand.
    Request { id: Value, method: String, params: Map<String, Value> },
    /// It is a notification.
    Notification { method: String, params: Map<String, Value> },
    /// It answers. An id that is no number is left out.
    Answer { id: Option<u64>, outcome: Result<Value, McpError> },
}

/// The messages of a line: one, or several from servers of an older version.
pub(crate) fn read(line: &[u8]) -> Option<Vec<Incoming>> {
    let value = strict::from_slice(line).ok()?;
    strict::check_integers(line).ok()?;
    match value {
        Value::Array(batch) if !batch.is_empty() => batch.into_iter().map(message).collect(),
        single => message(single).map(|message| vec![message]),
    }
}

fn message(value: Value) -> Option<Incoming> {
    let Value::Object(mut members) = value else { return None };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return None;
    }
    let id = members.remove("id");
    let Some(method) = members.remove("method") else {
        let outcome = match (members.remove("result"), members.remove("error")) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(answered(error)),
            _ => return None,
        };
        return Some(Incoming::Answer { id: id?.as_u64(), outcome });
    };
    let Value::String(method) = method else { return None };
    let params = match members.remove("params") {
        Some(Value::Object(params)) => params,
        None => Map::new(),
        Some(_) => return None,
    };
    match id {
        None => Some(Incoming::Notification { method, params }),
        Some(id @ (Value::String(_) | Value::Number(_))) => {
            Some(Incoming::Request { id, method, params })
        }
        Some(_) => None,
    }
}

fn answered(mut error: Value) -> McpError {
    let code = error.get("code").and_then(Value::as_i64).unwrap_or(RpcError::INTERNAL_ERROR);
    let message = error.get("message").and_then(Value::as_str).unwrap_or("an error without words");
    let message = message.chars().take(MAX_WORDS).collect();
    let data = error.get_mut("data").map(|data| Box::new(data.take()));
    McpError::Answered { code, message, data }
}

/// What can be told of a line of JSON that cannot be read otherwise, and what is wrong with it.
pub(crate) fn unreadable(line: &[u8]) -> Option<(Envelope, McpError)> {
    let problem = strict::check(line).and_then(|()| strict::check_integers(line)).err()?;
    if matches!(problem, StrictError::Syntax { .. }) {
        return None;
    }
    Some((Envelope::of(line), McpError::Unreadable(problem.to_string())))
}

/// Everything that we send. The member `jsonrpc` comes first.
#[derive(Default, Serialize)]
#[serde(tag = "jsonrpc", rename = "2.0")]
struct Outgoing<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

impl Outgoing<'_> {
    fn line(&self) -> Vec<u8> {
        // Values always have a JSON form.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// A request as it is sent.
pub(crate) fn request(id: u64, method: &str, params: &Map<String, Value>) -> Vec<u8> {
    let id = Value::from(id);
    let (id, method, params) = (Some(&id), Some(method), Some(params));
    Outgoing { id, method, params, ..Outgoing::default() }.line()
}

/// A notification as it is sent.
pub(crate) fn notification(method: &str, params: Option<&Map<String, Value>>) -> Vec<u8> {
    Outgoing { method: Some(method), params, ..Outgoing::default() }.line()
}

/// An answer as it is sent.
pub(crate) fn answer(id: &Value, result: &Value) -> Vec<u8> {
    Outgoing { id: Some(id), result: Some(result), ..Outgoing::default() }.line()
}

/// An error as it is sent.
pub(crate) fn refusal(id: &Value, error: RpcError) -> Vec<u8> {
    Outgoing { id: Some(id), error: Some(error), ..Outgoing::default() }.line()
}

#[cfg(test)]
mod tests {
    use chio_core::text::members;
    use serde_json::json;

    use super::*;

    fn check(line: &str, expected: &[Incoming]) {
        assert_eq!(read(line.as_bytes()).unwrap_or_default(), expected, "{line}");
    }

    fn answer_of(id: u64, outcome: Result<Value, McpError>) -> Incoming {
        Incoming::Answer { id: Some(id), outcome }
    }

    #[test]
    fn messages_are_told_apart() {
        let note = |params: Value| Incoming::Notification {
            method: "n".to_owned(),
            params: members(params),
        };
        check(r#"{"jsonrpc":"2.0","method":"n"}"#, &[note(json!({}))]);
        check(r#"{"jsonrpc":"2.0","method":"n","params":{"a":1},"x":2}"#, &[note(json!({"a": 1}))]);
        let request =
            Incoming::Request { id: json!("q"), method: "m".to_owned(), params: Map::new() };
        check(r#"{"jsonrpc":"2.0","id":"q","method":"m"}"#, &[request]);
        check(
            r#"{"jsonrpc":"2.0","id":3,"result":{"b":[]}}"#,
            &[answer_of(3, Ok(json!({"b": []})))],
        );
        let data = Some(Box::new(json!(1)));
        let error = McpError::Answered { code: -5, message: "no".to_owned(), data };
        check(
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-5,"message":"no","data":1}}"#,
            &[answer_of(3, Err(error))],
        );
        let stray = Incoming::Answer { id: None, outcome: Ok(json!(1)) };
        check(r#"{"jsonrpc":"2.0","id":"not ours","result":1}"#, &[stray]);
        check(
            r#"[{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":1,"result":2}]"#,
            &[note(json!({})), answer_of(1, Ok(json!(2)))],
        );
    }

    #[test]
    fn what_is_no_message_is_none() {
        for line in [
            "",
            "hello",
            "{}",
            "[]",
            "7",
            r#"{"jsonrpc":"1.0","method":"n"}"#,
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","method":7}"#,
            r#"{"jsonrpc":"2.0","method":"n","params":[1]}"#,
            r#"{"jsonrpc":"2.0","method":"n","id":null}"#,
            r#"{"jsonrpc":"2.0","method":"n","id":{}}"#,
            r#"{"jsonrpc":"2.0","result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","method":"n","method":"m"}"#,
        ] {
            check(line, &[]);
        }
    }

    #[test]
    fn a_message_that_cannot_be_read_keeps_its_id() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":4,"result":{}{}}}"#,
            "[".repeat(110),
            "]".repeat(110)
        );
        let twice = r#"{"jsonrpc":"2.0","id":4,"result":{"a":1,"a":2}}"#;
        let half = r#"{"jsonrpc":"2.0","result":"\udc00","id":4}"#;
        let large = r#"{"jsonrpc":"2.0","id":4,"result":[18446744073709551616]}"#;
        let question = r#"{"jsonrpc":"2.0","id":4,"method":"m","params":{"a":1,"a":2}}"#;
        for (line, is_call, problem) in [
            (deep.as_str(), false, "levels of nesting"),
            (twice, false, "found `a` twice"),
            (half, false, "found half of a surrogate pair (line 1, column "),
            (large, false, "integers of at most 64 bits"),
            (question, true, "found `a` twice"),
        ] {
            check(line, &[]);
            let (envelope, error) = unreadable(line.as_bytes()).unwrap();
            assert_eq!(envelope.id.and_then(|id| id.as_u64()), Some(4), "{line}");
            assert_eq!((envelope.is_call, envelope.is_response), (is_call, !is_call), "{line}");
            assert!(error.to_string().contains(problem), "{error}");
        }
        assert_eq!(unreadable(b"{\"id\":4"), None);
        assert_eq!(unreadable(br#"{"jsonrpc":"2.0","id":4,"result":1}"#), None);
        let exact = r#"{"jsonrpc":"2.0","id":4,"result":[18446744073709551615,1e300,100000000000000000000]}"#;
        check(exact, &[answer_of(4, Ok(json!([u64::MAX, 1e300, 1e20])))]);
    }

    #[test]
    fn what_is_sent_is_one_line() {
        let sent = notification("n", Some(&members(json!({"text": "a\nb"}))));
        assert_eq!(sent.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(sent.last(), Some(&b'\n'));
        for (sent, expected) in [
            (notification("n", None), r#"{"jsonrpc":"2.0","method":"n"}"#),
            (request(7, "m", &Map::new()), r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{}}"#),
            (answer(&json!("q"), &json!(null)), r#"{"jsonrpc":"2.0","id":"q","result":null}"#),
            (
                refusal(&json!(1), RpcError::new(-5, "no")),
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no"}}"#,
            ),
        ] {
            assert_eq!(String::from_utf8(sent).unwrap(), format!("{expected}\n"));
        }
    }
}
