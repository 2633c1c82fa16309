//! What is asked, in the words of A2A 0.3.
//!
//! Over JSON-RPC, members called `kind` say what is what. Over HTTP+JSON the SDKs of that version
//! read the JSON form of its protocol buffers instead, which has other names.

use serde_json::{Map, Value, json};

use super::{Envelope, listed, message, object, request_metadata, text};
use crate::error::AgentError;
use crate::input::{CreatePush, SendRequest};
use crate::interface::Binding;

/// What stands before every path.
pub(super) const PREFIX: &str = "/v1";

pub(super) fn send_params(
    send: &SendRequest,
    envelope: &Envelope,
    binding: Binding,
) -> Result<Map<String, Value>, AgentError> {
    let configuration = object([
        ("acceptedOutputModes", listed(&envelope.output_modes)),
        ("historyLength", send.history_length.map(|length| json!(length))),
        // Always said: what it means to say nothing depends on the binding.
        ("blocking", Some(json!(!send.return_immediately.unwrap_or_default()))),
    ]);
    let message = match binding {
        Binding::JsonRpc => kind_message(send, envelope)?,
        Binding::HttpJson => proto_message(send, envelope)?,
    };
    Ok(object([
        ("message", Some(Value::Object(message))),
        ("configuration", Some(Value::Object(configuration))),
        ("metadata", Some(Value::Object(request_metadata(send, envelope)))),
    ]))
}

/// The data to send, which has to be an object in 0.3.
fn data(send: &SendRequest) -> Result<Option<&Value>, AgentError> {
    if send.data.as_ref().is_some_and(|data| !data.is_object()) {
        let problem = "expected an object as `data`, since the interface speaks A2A 0.3";
        return Err(AgentError::InvalidToolInput(problem.to_owned()));
    }
    Ok(send.data.as_ref())
}

fn proto_message(
    send: &SendRequest,
    envelope: &Envelope,
) -> Result<Map<String, Value>, AgentError> {
    if !send.reference_task_ids.is_empty() {
        let problem = "expected no `reference_task_ids`, which A2A 0.3 over HTTP+JSON cannot carry";
        return Err(AgentError::InvalidToolInput(problem.to_owned()));
    }
    let said = send.text.as_ref().map(|text| json!({"text": text}));
    let given = data(send)?.map(|data| json!({"data": {"data": data}}));
    Ok(message(send, envelope, "ROLE_USER", ("content", said.into_iter().chain(given))))
}

fn kind_message(send: &SendRequest, envelope: &Envelope) -> Result<Map<String, Value>, AgentError> {
    let said = send.text.as_ref().map(|text| json!({"kind": "text", "text": text}));
    let given = data(send)?.map(|data| json!({"kind": "data", "data": data}));
    let mut members = object([("kind", Some(json!("message")))]);
    members.extend(message(send, envelope, "user", ("parts", said.into_iter().chain(given))));
    Ok(members)
}

/// What JSON-RPC asks for with a new config.
pub(super) fn set_push(push: &CreatePush) -> Map<String, Value> {
    object([
        ("taskId", Some(json!(push.task_id))),
        ("pushNotificationConfig", Some(Value::Object(push_config(push)))),
    ])
}

/// A config under the name that resources have.
pub(super) fn proto_push(push: &CreatePush) -> Map<String, Value> {
    let parent = format!("tasks/{}", push.task_id);
    let id = push.id.as_deref().unwrap_or_default();
    let config = json!({
        "name": format!("{parent}/pushNotificationConfigs/{id}"),
        "pushNotificationConfig": push_config(push),
    });
    object([
        ("parent", Some(json!(parent))),
        ("configId", text(push.id.as_ref())),
        ("config", Some(config)),
    ])
}

fn push_config(push: &CreatePush) -> Map<String, Value> {
    let authentication = push.authentication.as_ref().map(|it| {
        let schemes = ("schemes", Some(json!([it.scheme])));
        Value::Object(object([schemes, ("credentials", text(it.credentials.as_ref()))]))
    });
    object([
        ("id", text(push.id.as_ref())),
        ("url", Some(json!(push.url))),
        ("token", text(push.token.as_ref())),
        ("authentication", authentication),
    ])
}
