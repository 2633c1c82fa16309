//! The HTTP+JSON binding: a path for each operation.

use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use chio_core::strict;
use chio_edge::Refusal;
use chio_edge::body::collect;
use chio_net::jsonrpc::Body as Payload;
use chio_net::memory::HeldMemory;
use serde_json::{Map, Value, json};

use super::endpoint::Endpoint;
use super::operations::{Binding, Stopped, dispatch_operation};
use super::reply::{A2A_JSON, Reply, is_json, refused_rest, rest};
use super::rpc::check_version;
use crate::card::Mount;
use crate::dialect::{Dialect, Operation};
use crate::error::{Fault, Kind};

/// Answers an HTTP+JSON request.
pub(super) async fn answer_http_json(
    endpoint: &Endpoint,
    head: &Parts,
    body: Body,
    mount: Mount,
    path: &str,
) -> Reply {
    let as_a2a = wants_a2a(&head.headers);
    match run_operation(endpoint, head, body, mount, path).await {
        Ok(result) => rest(StatusCode::OK, result, as_a2a),
        Err(Stopped::Refused(refusal)) => refused_rest(&refusal),
        Err(Stopped::Failed(fault)) => {
            let (status, body) = fault.to_http();
            rest(status, body.into(), as_a2a)
        }
    }
}

async fn run_operation(
    endpoint: &Endpoint,
    head: &Parts,
    body: Body,
    mount: Mount,
    path: &str,
) -> Result<Payload, Stopped> {
    let request = endpoint.authenticate(head).await?;
    let unknown = || Fault::new(Kind::Method, "there is no such path");
    let (operation, id) = route(&head.method, path).ok_or_else(unknown)?;
    check_version(head, endpoint.shared.options.accept_missing_version)?;
    let limit = endpoint.shared.options.limits.body_bytes;
    let body = collect(body, limit).await.map_err(Refusal::from)?;
    let is_empty = body.text().is_empty();
    if !is_empty && head.method != Method::GET && !is_json(&head.headers) {
        let message = "expected `Content-Type: application/json`";
        return Err(Fault::new(Kind::MediaType, message).into());
    }
    let (members, held) = if is_empty || head.method == Method::GET {
        (Ok(Map::new()), HeldMemory::of_process(0))
    } else {
        body.read(read).await.map_err(Refusal::from)?
    };
    let mut params = if head.method == Method::GET { query(head) } else { members? };
    if let Some(id) = id {
        params.insert("id".to_owned(), json!(id));
    }
    let spoken = (Binding::HttpJson, Dialect::V1);
    dispatch_operation(endpoint, request, spoken, operation, (params, held), mount).await
}

/// What a path asks for, and of which task.
fn route(method: &Method, path: &str) -> Option<(Operation, Option<String>)> {
    let segments: Vec<&str> = path.split('/').collect();
    let is = |wanted: &Method| method == wanted;
    match *segments.as_slice() {
        ["message:send"] if is(&Method::POST) => Some((Operation::Send, None)),
        ["message:stream"] if is(&Method::POST) => Some((Operation::Stream, None)),
        ["tasks"] if is(&Method::GET) => Some((Operation::List, None)),
        ["extendedAgentCard"] if is(&Method::GET) => Some((Operation::ExtendedCard, None)),
        ["tasks", task] => {
            let (id, verb) = task.split_once(':').map_or((task, ""), |(id, verb)| (id, verb));
            let operation = match verb {
                "" if is(&Method::GET) => Operation::Get,
                "cancel" if is(&Method::POST) => Operation::Cancel,
                "subscribe" if is(&Method::POST) || is(&Method::GET) => Operation::Subscribe,
                _ => return None,
            };
            (!id.is_empty()).then(|| (operation, Some(id.to_owned())))
        }
        ["tasks", _, "pushNotificationConfigs"] if is(&Method::POST) || is(&Method::GET) => {
            Some((Operation::Push, None))
        }
        ["tasks", _, "pushNotificationConfigs", _] if is(&Method::GET) || is(&Method::DELETE) => {
            Some((Operation::Push, None))
        }
        _ => None,
    }
}

/// The query as params: flags are flags, and the rest is text.
fn query(head: &Parts) -> Map<String, Value> {
    let members = url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
    let member = |(name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
        let value = match (&*name, &*value) {
            ("includeArtifacts" | "include_artifacts", "true") => json!(true),
            ("includeArtifacts" | "include_artifacts", "false") => json!(false),
            (_, text) => json!(text),
        };
        (name.into_owned(), value)
    };
    members.map(member).collect()
}

fn read(bytes: &[u8]) -> Result<Map<String, Value>, Fault> {
    let value: Value =
        strict::from_slice(bytes).map_err(|error| Fault::new(Kind::Parse, error.to_string()))?;
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(Fault::params("expected the body to be an object")),
    }
}

/// Whether a client uses A2A's media type for JSON.
fn wants_a2a(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().chain(headers.get_all(CONTENT_TYPE).iter());
    let mut texts = values.filter_map(|value| value.to_str().ok());
    texts.any(|text| text.to_ascii_lowercase().contains(A2A_JSON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_its_path() {
        let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
        let of = |operation, id: &str| Some((operation, Some(id.to_owned())));
        for (method, path, expected) in [
            (&post, "message:send", Some((Operation::Send, None))),
            (&get, "message:send", None),
            (&post, "message:stream", Some((Operation::Stream, None))),
            (&get, "tasks", Some((Operation::List, None))),
            (&get, "tasks/a2a-task-7", of(Operation::Get, "a2a-task-7")),
            (&post, "tasks/a2a-task-7", None),
            (&post, "tasks/a2a-task-7:cancel", of(Operation::Cancel, "a2a-task-7")),
            (&get, "tasks/a2a-task-7:cancel", None),
            (&post, "tasks/a2a-task-7:subscribe", of(Operation::Subscribe, "a2a-task-7")),
            (&get, "tasks/a2a-task-7:subscribe", of(Operation::Subscribe, "a2a-task-7")),
            (&post, "tasks/t/pushNotificationConfigs", Some((Operation::Push, None))),
            (&get, "tasks/t/pushNotificationConfigs/c", Some((Operation::Push, None))),
            (&delete, "tasks/t/pushNotificationConfigs/c", Some((Operation::Push, None))),
            (&post, "tasks/t/pushNotificationConfigs/c", None),
            (&get, "extendedAgentCard", Some((Operation::ExtendedCard, None))),
            (&post, "tenant/message:send", None),
            (&get, "tasks/", None),
            (&get, "", None),
        ] {
            assert_eq!(route(method, path), expected, "{method} {path}");
        }
    }
}
