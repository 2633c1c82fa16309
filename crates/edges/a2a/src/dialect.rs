//! The dialects: the methods of each, and how each decodes and encodes messages.

mod fields;
pub(crate) mod seed;
pub(crate) mod v03;
pub(crate) mod v1;

use chio_net::jsonrpc::{Body, RpcError};
use serde_json::{Map, Value};

pub(crate) use fields::Fields;

use crate::error::Fault;
use crate::message::{SendRequest, TaskRef};
use crate::record::TaskRecord;

/// A form of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// A2A 1.0.
    V1,
    /// A2A 0.3.
    V03,
    /// Chio's own documents.
    Seed,
}

/// What a method does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Call a skill.
    Send,
    /// Call a skill and stream the response.
    Stream,
    /// Read a task.
    Get,
    /// List the caller's tasks.
    List,
    /// Cancel a task.
    Cancel,
    /// Stream the changes of a task.
    Subscribe,
    /// Anything about push notifications.
    Push,
    /// Read the card for authenticated clients.
    ExtendedCard,
}

/// Every method but the two whose dialect depends on the message.
const METHODS: [(&str, Dialect, Operation); 21] = {
    use Dialect::{Seed, V1, V03};
    use Operation::{Cancel, ExtendedCard, Get, List, Push, Send, Stream, Subscribe};
    [
        ("SendMessage", V1, Send),
        ("SendStreamingMessage", V1, Stream),
        ("GetTask", V1, Get),
        ("ListTasks", V1, List),
        ("CancelTask", V1, Cancel),
        ("SubscribeToTask", V1, Subscribe),
        ("CreateTaskPushNotificationConfig", V1, Push),
        ("GetTaskPushNotificationConfig", V1, Push),
        ("ListTaskPushNotificationConfigs", V1, Push),
        ("DeleteTaskPushNotificationConfig", V1, Push),
        ("GetExtendedAgentCard", V1, ExtendedCard),
        ("tasks/get", V03, Get),
        ("tasks/cancel", V03, Cancel),
        ("tasks/resubscribe", V03, Subscribe),
        ("tasks/pushNotificationConfig/set", V03, Push),
        ("tasks/pushNotificationConfig/get", V03, Push),
        ("tasks/pushNotificationConfig/list", V03, Push),
        ("tasks/pushNotificationConfig/delete", V03, Push),
        ("agent/getAuthenticatedExtendedCard", V03, ExtendedCard),
        ("task/get", Seed, Get),
        ("task/cancel", Seed, Cancel),
    ]
};

/// Whether a dialect has this method.
pub(crate) fn is_known(method: &str) -> bool {
    matches!(method, "message/send" | "message/stream")
        || METHODS.iter().any(|(name, ..)| *name == method)
}

/// The dialect of a request, and what its method does.
pub(crate) fn detect(method: &str, params: &Map<String, Value>) -> Option<(Dialect, Operation)> {
    let operation = match method {
        "message/send" => Operation::Send,
        "message/stream" => Operation::Stream,
        _ => {
            let known = METHODS.iter().find(|(name, ..)| *name == method);
            return known.map(|(_, dialect, operation)| (*dialect, *operation));
        }
    };
    // Clients of 0.3 always state the kind of a message and its parts; Chio's own never do.
    let message = params.get("message");
    let has_kind = |value: &Value| value.get("kind").is_some();
    let parts = message.and_then(|message| message.get("parts")).and_then(Value::as_array);
    let is_message =
        message.and_then(|message| message.get("kind")).and_then(Value::as_str) == Some("message");
    let is_v03 = is_message || parts.is_some_and(|parts| parts.iter().any(has_kind));
    Some((if is_v03 { Dialect::V03 } else { Dialect::Seed }, operation))
}

impl Dialect {
    /// Reads a message to a skill.
    pub(crate) fn read_send(self, params: Map<String, Value>) -> Result<SendRequest, Fault> {
        match self {
            Self::V1 => v1::read_send(params),
            Self::V03 => v03::read_send(params),
            Self::Seed => seed::read_send(params),
        }
    }

    /// Reads the reference to a task.
    pub(crate) fn read_task(self, params: Map<String, Value>) -> Result<TaskRef, Fault> {
        match self {
            Self::V1 | Self::V03 => v1::read_task(params),
            Self::Seed => seed::read_task(params),
        }
    }

    /// Writes the response to a message.
    pub(crate) fn write_sent(self, record: &TaskRecord, history: Option<usize>) -> Body {
        match self {
            Self::V1 => Body::written(&v1::Sent::new(record, history)),
            Self::V03 => v03::write_sent(record, history).into(),
            Self::Seed => seed::write(record, seed::SENT).into(),
        }
    }

    /// Writes a task.
    pub(crate) fn write_task(self, record: &TaskRecord, history: Option<usize>) -> Body {
        match self {
            Self::V1 => Body::written(&v1::Task::new(record, history, true)),
            Self::V03 => v03::write_task(record, history).into(),
            Self::Seed => seed::write(record, seed::FETCHED).into(),
        }
    }

    /// Writes an error.
    pub(crate) fn write_fault(self, fault: Fault) -> RpcError {
        match self {
            Self::V1 => fault.into_v1(),
            Self::V03 => fault.into_v03(),
            Self::Seed => fault.into_seed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn detect_value(method: &str, params: Value) -> Option<(Dialect, Operation)> {
        detect(method, &serde_json::from_value(params).unwrap())
    }

    // covers: CROSS-018
    #[test]
    fn each_method_is_of_one_dialect() {
        use Dialect::{Seed, V1, V03};
        for (method, expected) in [
            ("SendMessage", Some((V1, Operation::Send))),
            ("GetTask", Some((V1, Operation::Get))),
            ("tasks/get", Some((V03, Operation::Get))),
            ("tasks/cancel", Some((V03, Operation::Cancel))),
            ("agent/getAuthenticatedExtendedCard", Some((V03, Operation::ExtendedCard))),
            ("task/get", Some((Seed, Operation::Get))),
            ("task/cancel", Some((Seed, Operation::Cancel))),
            ("message/send", Some((Seed, Operation::Send))),
            ("message/stream", Some((Seed, Operation::Stream))),
            ("sendMessage", None),
            ("task/list", None),
            ("", None),
        ] {
            assert_eq!(detect_value(method, json!({})), expected, "{method}");
            assert_eq!(is_known(method), expected.is_some(), "{method}");
        }
    }

    #[test]
    fn a_message_tells_0_3_from_the_seed_by_its_kinds() {
        for (message, dialect) in [
            (json!({"kind": "message", "parts": []}), Dialect::V03),
            (json!({"parts": [{"kind": "text", "text": "x"}]}), Dialect::V03),
            (json!({"parts": [{"type": "text", "text": "x"}]}), Dialect::Seed),
            (json!({"parts": [{"text": "x"}]}), Dialect::Seed),
            (json!({"kind": 7}), Dialect::Seed),
            (json!(null), Dialect::Seed),
        ] {
            let found = detect_value("message/send", json!({"message": message})).unwrap();
            assert_eq!(found, (dialect, Operation::Send), "{message}");
        }
    }
}
