//! What is asked, as the interface's version and binding want it.

mod v03;

use http::Method;
use serde_json::{Map, Value, json};
use url::Url;

use crate::error::AgentError;
use crate::input::{CreatePush, ListPush, OnePush, Operation, SendRequest};
use crate::interface::{Binding, Dialect, Interface};
use crate::place::segment;

/// The members of `metadata.chio` that are the adapter's to say. A caller's are taken out.
const RESERVED: [&str; 5] =
    ["targetSkillId", "targetSkillName", "capabilityRef", "callChain", "continuation"];

/// What the adapter adds to a message.
#[derive(Debug, Clone)]
pub(crate) struct Envelope {
    /// The message's id.
    pub(crate) message_id: String,
    pub(crate) skill_id: String,
    pub(crate) skill_name: String,
    pub(crate) output_modes: Vec<String>,
    /// Where the call comes from, for `metadata.chio`.
    pub(crate) lineage: Map<String, Value>,
}

/// A request to an interface.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) verb: Method,
    pub(crate) url: Url,
    pub(crate) body: Option<Value>,
}

/// One operation, in the terms of both bindings.
struct Form {
    method: &'static str,
    params: Map<String, Value>,
    rest: Rest,
}

struct Rest {
    verb: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    /// None for requests without one.
    body: Option<Map<String, Value>>,
}

impl Rest {
    fn get(path: String, query: Vec<(&'static str, String)>) -> Self {
        Self { verb: Method::GET, path, query, body: None }
    }

    fn post(path: String, body: Map<String, Value>) -> Self {
        Self { verb: Method::POST, path, query: Vec::new(), body: Some(body) }
    }
}

/// Puts an operation into a request.
///
/// # Errors
/// When it cannot be said to this interface.
pub(crate) fn outgoing(
    operation: &Operation,
    envelope: &Envelope,
    interface: &Interface,
    id: u64,
) -> Result<Outgoing, AgentError> {
    let form = form(operation, envelope, interface)?;
    let mut url = Url::parse(&interface.url)
        .map_err(|_| AgentError::InvalidUrl("the interface's URL cannot be read".to_owned()))?;
    let tenant = interface.tenant.as_deref().filter(|_| interface.dialect == Dialect::V1);
    match interface.binding {
        Binding::JsonRpc => {
            let mut params = form.params;
            if let Some(tenant) = tenant {
                params.insert("tenant".to_owned(), json!(tenant));
            }
            let body = json!({"jsonrpc": "2.0", "id": id, "method": form.method, "params": params});
            Ok(Outgoing { verb: Method::POST, url, body: Some(body) })
        }
        Binding::HttpJson => {
            let tenant = tenant.map(|tenant| segment("tenant", tenant)).transpose()?;
            let tenant = tenant.map(|tenant| format!("/{tenant}")).unwrap_or_default();
            let base = url.path().trim_end_matches('/').to_owned();
            let Rest { verb, path, query, body } = form.rest;
            let prefix = match interface.dialect {
                Dialect::V03 if !base.ends_with(v03::PREFIX) => v03::PREFIX,
                _ => "",
            };
            url.set_path(&format!("{base}{prefix}{tenant}{path}"));
            if !query.is_empty() {
                url.query_pairs_mut().extend_pairs(query);
            }
            Ok(Outgoing { verb, url, body: body.map(Value::Object) })
        }
    }
}

/// An object of those members that are there.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let there = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    there.collect()
}

fn text(value: Option<&String>) -> Option<Value> {
    value.map(|value| json!(value))
}

/// The form of an operation. The versions differ by their methods, and by members here and there.
fn form(
    operation: &Operation,
    envelope: &Envelope,
    interface: &Interface,
) -> Result<Form, AgentError> {
    let dialect = interface.dialect;
    let method = |v1, v03| if dialect == Dialect::V1 { v1 } else { v03 };
    let (method, params, rest) = match operation {
        Operation::Send(send) => {
            let params = match dialect {
                Dialect::V1 => send_params(send, envelope),
                Dialect::V03 => v03::send_params(send, envelope, interface.binding)?,
            };
            let (method, path) = if send.stream {
                (method("SendStreamingMessage", "message/stream"), "/message:stream")
            } else {
                (method("SendMessage", "message/send"), "/message:send")
            };
            (method, params.clone(), Rest::post(path.to_owned(), params))
        }
        Operation::Get { id, history_length } => {
            let params = object([
                ("id", Some(json!(id))),
                ("historyLength", history_length.map(|length| json!(length))),
            ]);
            let query = history_length.map(|length| ("historyLength", length.to_string()));
            let rest = Rest::get(task_path(id, "")?, query.into_iter().collect());
            (method("GetTask", "tasks/get"), params, rest)
        }
        Operation::Subscribe { id } => {
            let rest = Rest { body: None, ..Rest::post(task_path(id, ":subscribe")?, Map::new()) };
            let params = object([("id", Some(json!(id)))]);
            (method("SubscribeToTask", "tasks/resubscribe"), params, rest)
        }
        Operation::Cancel { id, metadata } => {
            let metadata = metadata.clone().map(Value::Object);
            let params = object([("id", Some(json!(id))), ("metadata", metadata)]);
            let rest = Rest::post(task_path(id, ":cancel")?, params.clone());
            (method("CancelTask", "tasks/cancel"), params, rest)
        }
        Operation::CreatePush(push) => {
            let (params, rest) = new_push(push, dialect)?;
            let old = "tasks/pushNotificationConfig/set";
            (method("CreateTaskPushNotificationConfig", old), params, rest)
        }
        Operation::GetPush(push) => {
            let (params, rest) = one_push(push, dialect)?;
            let old = "tasks/pushNotificationConfig/get";
            (method("GetTaskPushNotificationConfig", old), params, rest)
        }
        Operation::DeletePush(push) => {
            let (params, rest) = one_push(push, dialect)?;
            let old = "tasks/pushNotificationConfig/delete";
            let rest = Rest { verb: Method::DELETE, ..rest };
            (method("DeleteTaskPushNotificationConfig", old), params, rest)
        }
        Operation::ListPush(push) => {
            let (params, rest) = list_push(push, dialect)?;
            let old = "tasks/pushNotificationConfig/list";
            (method("ListTaskPushNotificationConfigs", old), params, rest)
        }
    };
    Ok(Form { method, params, rest })
}

fn new_push(push: &CreatePush, dialect: Dialect) -> Result<(Map<String, Value>, Rest), AgentError> {
    let (params, body) = match dialect {
        Dialect::V1 => (push_config(push), push_config(push)),
        Dialect::V03 => (v03::set_push(push), v03::proto_push(push)),
    };
    Ok((params, Rest::post(push_path(&push.task_id, None)?, body)))
}

fn one_push(push: &OnePush, dialect: Dialect) -> Result<(Map<String, Value>, Rest), AgentError> {
    let [task, config] = match dialect {
        Dialect::V1 => ["taskId", "id"],
        Dialect::V03 => ["id", "pushNotificationConfigId"],
    };
    let params = object([(task, Some(json!(push.task_id))), (config, Some(json!(push.id)))]);
    Ok((params, Rest::get(push_path(&push.task_id, Some(&push.id))?, Vec::new())))
}

fn list_push(push: &ListPush, dialect: Dialect) -> Result<(Map<String, Value>, Rest), AgentError> {
    let path = push_path(&push.task_id, None)?;
    // There are no pages in 0.3.
    if dialect == Dialect::V03 {
        return Ok((object([("id", Some(json!(push.task_id)))]), Rest::get(path, Vec::new())));
    }
    let params = object([
        ("taskId", Some(json!(push.task_id))),
        ("pageSize", push.page_size.map(|size| json!(size))),
        ("pageToken", text(push.page_token.as_ref())),
    ]);
    let size = push.page_size.map(|size| ("pageSize", size.to_string()));
    let page = push.page_token.clone().map(|token| ("pageToken", token));
    Ok((params, Rest::get(path, size.into_iter().chain(page).collect())))
}

fn task_path(id: &str, verb: &str) -> Result<String, AgentError> {
    Ok(format!("/tasks/{}{verb}", segment("id", id)?))
}

fn push_path(task_id: &str, id: Option<&str>) -> Result<String, AgentError> {
    let one = id.map(|id| segment("id", id)).transpose()?;
    let one = one.map(|id| format!("/{id}")).unwrap_or_default();
    task_path(task_id, &format!("/pushNotificationConfigs{one}"))
}

fn push_config(push: &CreatePush) -> Map<String, Value> {
    let authentication = push.authentication.as_ref().map(|it| {
        let scheme = ("scheme", Some(json!(it.scheme)));
        Value::Object(object([scheme, ("credentials", text(it.credentials.as_ref()))]))
    });
    object([
        ("taskId", Some(json!(push.task_id))),
        ("id", text(push.id.as_ref())),
        ("url", Some(json!(push.url))),
        ("token", text(push.token.as_ref())),
        ("authentication", authentication),
    ])
}

/// What the messages of all versions have in common, around what is said.
fn message(
    send: &SendRequest,
    envelope: &Envelope,
    role: &str,
    (name, said): (&str, impl IntoIterator<Item = Value>),
) -> Map<String, Value> {
    object([
        ("messageId", Some(json!(envelope.message_id))),
        ("role", Some(json!(role))),
        (name, Some(said.into_iter().collect())),
        ("contextId", text(send.context_id.as_ref())),
        ("taskId", text(send.task_id.as_ref())),
        ("metadata", send.message_metadata.clone().map(Value::Object)),
        ("referenceTaskIds", listed(&send.reference_task_ids)),
    ])
}

fn listed(entries: &[String]) -> Option<Value> {
    (!entries.is_empty()).then(|| json!(entries))
}

fn send_params(send: &SendRequest, envelope: &Envelope) -> Map<String, Value> {
    let said = send.text.as_ref().map(|text| json!({"text": text, "mediaType": "text/plain"}));
    let given = send.data.as_ref();
    let given = given.map(|data| json!({"data": data, "mediaType": "application/json"}));
    let message = message(send, envelope, "ROLE_USER", ("parts", said.into_iter().chain(given)));
    let configuration = object([
        ("acceptedOutputModes", listed(&envelope.output_modes)),
        ("historyLength", send.history_length.map(|length| json!(length))),
        ("returnImmediately", send.return_immediately.map(|at_once| json!(at_once))),
    ]);
    let configuration = (!configuration.is_empty()).then_some(Value::Object(configuration));
    object([
        ("message", Some(Value::Object(message))),
        ("configuration", configuration),
        ("metadata", Some(Value::Object(request_metadata(send, envelope)))),
    ])
}

/// The caller's metadata, with the adapter's word for which skill is meant and where the call
/// comes from.
fn request_metadata(send: &SendRequest, envelope: &Envelope) -> Map<String, Value> {
    let mut metadata = send.metadata.clone();
    let mut chio = match metadata.remove("chio") {
        Some(Value::Object(chio)) => chio,
        _ => Map::new(),
    };
    // SECURITY: a caller must not be able to say in our name where its call comes from.
    for reserved in RESERVED {
        chio.remove(reserved);
    }
    chio.extend(envelope.lineage.clone());
    chio.insert("targetSkillId".to_owned(), json!(envelope.skill_id));
    chio.insert("targetSkillName".to_owned(), json!(envelope.skill_name));
    metadata.insert("chio".to_owned(), Value::Object(chio));
    metadata
}
