//! The JSON-RPC binding: one message and its response.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::request::Parts;
use chio_edge::Refusal;
use chio_edge::body::{BodyError, collect};
use chio_net::jsonrpc::{Body as Payload, Inbound, Message, RequestId, Response, RpcError};

use super::endpoint::Endpoint;
use super::operations::{Binding, Stopped, dispatch_operation};
use super::reply::{Reply, empty, is_json, json, refused_rpc};
use crate::card::Mount;
use crate::dialect::{self, Dialect};
use crate::error::{Fault, Kind};

/// The header and the query parameter that name the version.
const VERSION: &str = "a2a-version";

const READER: Inbound = Inbound::new().without_responses().with_methods(dialect::is_known);

/// Answers a JSON-RPC request.
pub(super) async fn answer_json_rpc(
    endpoint: &Endpoint,
    head: &Parts,
    body: Body,
    mount: Mount,
) -> Result<Reply, Box<Reply>> {
    let refused = |refusal: Refusal| Box::new(refused_rpc(&refusal, None));
    let request = endpoint.authenticate(head).await.map_err(refused)?;
    if !is_json(&head.headers) {
        let fault = Fault::new(Kind::MediaType, "expected `Content-Type: application/json`");
        return Ok(respond(RequestId::NULL, Err(fault.into_v1())));
    }
    let limit = endpoint.shared.options.limits.body_bytes;
    let unread = |error: BodyError| refused(error.into());
    let body = collect(body, limit).await.map_err(unread)?;
    let (message, held) = body.read(|text| READER.read(text)).await.map_err(unread)?;
    let (id, method, params) = match message {
        Ok(Message::Request(request)) => (Some(request.id), request.method, request.params),
        Ok(Message::Notification(notification)) => (None, notification.method, notification.params),
        Ok(_) => {
            let error = RpcError::invalid_request("expected one message, found another thing");
            return Ok(respond(RequestId::NULL, Err(error)));
        }
        Err(rejected) => {
            // What is no message is no notification either.
            let is_message = rejected.error.code != RpcError::INVALID_REQUEST;
            let id = rejected.answer_to.or((!is_message).then_some(RequestId::NULL));
            return Ok(match id {
                Some(id) => respond(id, Err(*rejected.error)),
                None => empty(StatusCode::ACCEPTED),
            });
        }
    };
    // A notification has no response, whatever comes of it.
    let reply = |outcome: Result<Payload, RpcError>| match &id {
        Some(id) => respond(id.clone(), outcome),
        None => empty(StatusCode::ACCEPTED),
    };
    let params = match params.into_object() {
        Ok(params) => params,
        Err(error) => return Ok(reply(Err(error))),
    };
    let Some((dialect, operation)) = dialect::detect(&method, &params) else {
        return Ok(reply(Err(RpcError::method_not_found())));
    };
    if dialect == Dialect::V1
        && let Err(fault) = check_version(head, endpoint.shared.options.accept_missing_version)
    {
        return Ok(reply(Err(fault.into_v1())));
    }
    let spoken = (Binding::JsonRpc, dialect);
    match dispatch_operation(endpoint, request, spoken, operation, (params, held), mount).await {
        Ok(result) => Ok(reply(Ok(result))),
        Err(Stopped::Failed(fault)) => Ok(reply(Err(dialect.write_fault(fault)))),
        Err(Stopped::Refused(refusal)) => Err(Box::new(refused_rpc(&refusal, id))),
    }
}

fn respond(id: RequestId, outcome: Result<Payload, RpcError>) -> Reply {
    json(StatusCode::OK, Response { id, outcome }.to_text())
}

/// Checks that a request speaks 1.x: by its header, or else by its query.
pub(super) fn check_version(head: &Parts, accept_missing: bool) -> Result<(), Fault> {
    let mut headers = head.headers.get_all(VERSION).iter();
    let header = headers.next().map(|value| value.to_str().unwrap_or("?").trim().to_owned());
    let several = headers.next().is_some();
    let in_query = || {
        let query = head.uri.query().unwrap_or_default();
        let mut members = url::form_urlencoded::parse(query.as_bytes());
        let found = members.find(|(name, _)| name.eq_ignore_ascii_case(VERSION));
        found.map(|(_, value)| value.trim().to_owned())
    };
    let version = header.filter(|version| !version.is_empty()).or_else(in_query);
    let version = version.filter(|version| !version.is_empty());
    let message = match version.as_deref() {
        None if accept_missing => return Ok(()),
        // A client that names no version speaks 0.3, which does not have this method.
        None => "expected `A2A-Version: 1.0`, found none",
        Some(version) if is_v1(version) && !several => return Ok(()),
        Some(_) => "expected `A2A-Version: 1.0`, found another",
    };
    Err(Fault::new(Kind::Version, message))
}

/// Whether a version is 1.x.
fn is_v1(version: &str) -> bool {
    let mut parts = version.split('.');
    parts.next() == Some("1")
        && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn head(uri: &str, versions: &[&str]) -> Parts {
        let mut request = Request::builder().uri(uri);
        for version in versions {
            request = request.header(VERSION, *version);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_request_speaks_1_x_by_its_header_or_its_query() {
        for (uri, versions, expected) in [
            ("/", &["1.0"][..], true),
            ("/", &["1"], true),
            ("/", &["1.0.1"], true),
            ("/", &["1.7"], true),
            ("/", &["0.3"], false),
            ("/", &["99.0"], false),
            ("/", &["10"], false),
            ("/", &["1.x"], false),
            ("/", &["1.0", "1.0"], false),
            ("/", &[""], false),
            ("/", &[], false),
            ("/?A2A-Version=1.0", &[], true),
            ("/?A2A-Version=1.0", &[""], true),
            ("/?A2A-Version=2.0", &[], false),
            ("/?A2A-Version=1.0", &["2.0"], false),
        ] {
            let found = check_version(&head(uri, versions), false);
            assert_eq!(found.is_ok(), expected, "{uri} {versions:?}");
            let fault = found.err().map(|fault| fault.kind);
            assert!(fault.is_none_or(|kind| kind == Kind::Version));
        }
        assert!(check_version(&head("/", &[]), true).is_ok());
        assert!(check_version(&head("/", &["0.3"]), true).is_err());
    }
}
