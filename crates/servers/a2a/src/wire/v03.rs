//! What is asked, in the words of A2A 0.3.
//!
//! Over JSON-RPC, members called `kind` say what is what. Over HTTP+JSON the SDKs of that version
//! read the JSON form of its protocol buffers instead, which has other names.

use http::Method;
use serde_json::{Map, Value, json};

use super::{
    Envelope, Form, Rest, form_of_none, listed, object, push_path, request_metadata, task_form,
    text,
};
use crate::error::AgentError;
use crate::input::{CreatePush, Operation, SendRequest};
use crate::interface::Binding;

/// What stands before every path.
pub(super) const PREFIX: &str = "/v1";

pub(super) fn form(
    operation: &Operation,
    envelope: &Envelope,
    binding: Binding,
) -> Result<Form, AgentError> {
    Ok(match operation {
        Operation::Send(send) => send_form(send, envelope, binding)?,
        _ => match task_form(operation, ["tasks/get", "tasks/resubscribe", "tasks/cancel"])? {
            Some(form) => form,
            None => push_form(operation)?,
        },
    })
}

fn send_form(
    send: &SendRequest,
    envelope: &Envelope,
    binding: Binding,
) -> Result<Form, AgentError> {
    let configuration = object([
        ("acceptedOutputModes", listed(&envelope.output_modes)),
        ("historyLength", send.history_length.map(|length| json!(length))),
        // Always said: what it means to say nothing depends on the binding.
        ("blocking", Some(json!(!send.return_immediately.unwrap_or_default()))),
    ]);
    let message = match binding {
        Binding::JsonRpc => message(send, envelope)?,
        Binding::HttpJson => proto_message(send, envelope)?,
    };
    let params = object([
        ("message", Some(Value::Object(message))),
        ("configuration", Some(Value::Object(configuration))),
        ("metadata", Some(Value::Object(request_metadata(send, envelope)))),
    ]);
    let (method, path) = if send.stream {
        ("message/stream", "/message:stream")
    } else {
        ("message/send", "/message:send")
    };
    Ok(Form { method, rest: Rest::post(path.to_owned(), params.clone()), params })
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
    let content: Vec<Value> = said.into_iter().chain(given).collect();
    Ok(object([
        ("messageId", Some(json!(envelope.message_id))),
        ("role", Some(json!("ROLE_USER"))),
        ("content", Some(Value::Array(content))),
        ("contextId", text(send.context_id.as_ref())),
        ("taskId", text(send.task_id.as_ref())),
        ("metadata", send.message_metadata.clone().map(Value::Object)),
    ]))
}

fn message(send: &SendRequest, envelope: &Envelope) -> Result<Map<String, Value>, AgentError> {
    let said = send.text.as_ref().map(|text| json!({"kind": "text", "text": text}));
    let given = data(send)?.map(|data| json!({"kind": "data", "data": data}));
    let parts: Vec<Value> = said.into_iter().chain(given).collect();
    Ok(object([
        ("kind", Some(json!("message"))),
        ("messageId", Some(json!(envelope.message_id))),
        ("role", Some(json!("user"))),
        ("parts", Some(Value::Array(parts))),
        ("contextId", text(send.context_id.as_ref())),
        ("taskId", text(send.task_id.as_ref())),
        ("metadata", send.message_metadata.clone().map(Value::Object)),
        ("referenceTaskIds", listed(&send.reference_task_ids)),
    ]))
}

fn push_form(operation: &Operation) -> Result<Form, AgentError> {
    Ok(match operation {
        Operation::CreatePush(push) => {
            let params = object([
                ("taskId", Some(json!(push.task_id))),
                ("pushNotificationConfig", Some(Value::Object(push_config(push)))),
            ]);
            let rest = Rest::post(push_path(&push.task_id, None)?, proto_push(push));
            Form { method: "tasks/pushNotificationConfig/set", params, rest }
        }
        Operation::GetPush(push) | Operation::DeletePush(push) => {
            let params = object([
                ("id", Some(json!(push.task_id))),
                ("pushNotificationConfigId", Some(json!(push.id))),
            ]);
            let rest = Rest::get(push_path(&push.task_id, Some(&push.id))?, Vec::new());
            if matches!(operation, Operation::GetPush(_)) {
                Form { method: "tasks/pushNotificationConfig/get", params, rest }
            } else {
                let rest = Rest { verb: Method::DELETE, ..rest };
                Form { method: "tasks/pushNotificationConfig/delete", params, rest }
            }
        }
        // There are no pages in 0.3.
        Operation::ListPush(push) => Form {
            method: "tasks/pushNotificationConfig/list",
            params: object([("id", Some(json!(push.task_id)))]),
            rest: Rest::get(push_path(&push.task_id, None)?, Vec::new()),
        },
        other => return form_of_none(other),
    })
}

/// A config under the name that resources have.
fn proto_push(push: &CreatePush) -> Map<String, Value> {
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
