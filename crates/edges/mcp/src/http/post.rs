//! `POST /mcp`: one message, and the answer to it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use chio_core::registry::ErrorCode;
use chio_cross_protocol::Principal;
use chio_edge::body::{BodyError, collect_json};
use chio_net::jsonrpc::{
    Inbound, Incoming, Message, Rejected, Request as RpcRequest, RequestId, Response, RpcError,
};
use chio_net::memory::HeldMemory;
use serde_json::Value;

use super::body::stream;
use super::endpoint::{Authenticated, Endpoint};
use super::reply::{Reply, SESSION, empty, events, json_rpc, later, refusal, refused};
use crate::error::{invalid, unreleased};
use crate::events::{EventLog, Next, Priming, StreamId};
use crate::methods::batch::{self, Batch};
use crate::methods::{self, Credentials};
use crate::outlet::Outlet;
use crate::session::McpSession;

/// How long an answer may take that goes out in one piece. Later ones go out as a stream.
const AT_ONCE: Duration = Duration::from_millis(25);
/// When a client that has too many sessions may come again, in seconds.
const LATER: u64 = 30;

/// Answers a message.
pub(super) async fn answer(State(endpoint): State<Endpoint>, request: Request) -> Reply {
    let (head, body) = request.into_parts();
    // What is moved around by those who call this stays small.
    Box::pin(answer_message(&endpoint, &head, body)).await.unwrap_or_else(|reply| *reply)
}

async fn answer_message(
    endpoint: &Endpoint,
    head: &Parts,
    body: Body,
) -> Result<Reply, Box<Reply>> {
    let Authenticated { principal, proof, client } = endpoint.authenticate(head).await?;
    let refuse = |status, message: &str| Box::new(refusal(status, None, invalid(message)));
    let headers = &head.headers;
    let limits = &endpoint.shared.options.limits;
    let (limit, most) = (limits.message_bytes, limits.running);
    let body = collect_json(headers, body, "application/json, text/event-stream", limit).await;
    let unread = |error: BodyError| match error {
        BodyError::Crowded(_) => refused(error.into()),
        error => refuse(error.status(), &error.to_string()),
    };
    let read = move |body: &[u8]| Inbound::new().read_all(body, most).map_err(rejected);
    let (message, held) = body.map_err(unread)?.read(read).await.map_err(unread)?;
    let message = match message? {
        Incoming::One(message) => message,
        Incoming::Batch(messages) => {
            let session = endpoint.session(headers, principal.clone()).await?;
            if !session.version.has_batches() {
                return Err(rejected(Rejected::batch()));
            }
            endpoint.count(&client, batch::counted(&messages))?;
            let proof = proof.map_err(|error| refused(error.into()))?;
            let credentials = Credentials { capability: principal.capability, proof };
            return run_batch(endpoint, &session, messages, (credentials, held)).await;
        }
    };
    let request = match message {
        Message::Request(request) if request.method == "initialize" => {
            if headers.contains_key(SESSION) {
                let message = "expected `initialize` without `MCP-Session-Id`, found it";
                let reply = refusal(StatusCode::BAD_REQUEST, Some(request.id), invalid(message));
                return Err(Box::new(reply));
            }
            return Ok(initialize(endpoint, principal, request).await);
        }
        Message::Notification(notification) if notification.method == "initialize" => {
            let message = "expected `initialize` to be a request with an id, found a notification";
            return Err(refuse(StatusCode::BAD_REQUEST, message));
        }
        Message::Notification(notification) => {
            let session = endpoint.session(headers, principal).await?;
            if let Some(handled) = methods::handle_notification(&session, notification) {
                handled.await;
            }
            return Ok(empty(StatusCode::ACCEPTED));
        }
        Message::Response(response) => {
            let session = endpoint.session(headers, principal).await?;
            session.pending.resolve(response);
            return Ok(empty(StatusCode::ACCEPTED));
        }
        Message::Request(request) => request,
    };
    let capability = principal.capability.clone();
    let session = endpoint.session(headers, principal).await?;
    let proof = proof.map_err(|error| refused(error.into()))?;
    let credentials = Credentials { capability, proof };
    let log = events_of(&session)?;
    Ok(run_request(endpoint, session, log, request, (credentials, held)).await)
}

/// The refusal of what is no message.
fn rejected(rejected: Rejected) -> Box<Reply> {
    Box::new(refusal(StatusCode::BAD_REQUEST, rejected.answer_to, *rejected.error))
}

/// Opens a session. Its answer is a stream that ends with it.
async fn initialize(endpoint: &Endpoint, principal: Principal, request: RpcRequest) -> Reply {
    let shared = &endpoint.shared;
    let id = request.id;
    let params = match request.params.into_object() {
        Ok(params) if !id.is_null() => params,
        Ok(_) => {
            let error = invalid("expected a request id that is not null");
            return refusal(StatusCode::BAD_REQUEST, Some(id), error);
        }
        Err(error) => return refusal(StatusCode::BAD_REQUEST, Some(id), error),
    };
    let opener = Arc::clone(shared);
    // A client that leaves meanwhile leaves a session that expires, and nothing half open.
    let opening = tokio::spawn(async move {
        let (limits, retained) = (opener.options.limits.clone(), Arc::clone(&opener.retained));
        let events_of = |session_id: &str| {
            Outlet::Events(Arc::new(EventLog::new(session_id.to_owned(), limits, retained)))
        };
        methods::open(&opener, principal, params, events_of).await
    });
    let (session, result) = match opening.await {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => return unopened(id, error),
        Err(_) => return unopened(id, unreleased()),
    };
    let Outlet::Events(log) = &session.outlet else { return empty(StatusCode::NOT_FOUND) };
    let stream = log.open();
    let body = one_piece(&session, log, stream, Some(&Response::ok(id, result)));
    let mut reply = events("initialize_sse", body);
    if let Ok(name) = HeaderValue::from_str(&session.id) {
        reply.headers_mut().insert(SESSION, name);
    }
    reply
}

/// Why there is no session.
fn unopened(id: RequestId, error: RpcError) -> Reply {
    let number = error.data.as_ref().and_then(|data| data.pointer("/chioError/code"));
    let is = |code: ErrorCode| number.and_then(Value::as_u64) == Some(u64::from(code.number()));
    if is(ErrorCode::AuthMissingOrInvalid) {
        refusal(StatusCode::UNAUTHORIZED, Some(id), error)
    } else if is(ErrorCode::InternalError) {
        later(StatusCode::SERVICE_UNAVAILABLE, LATER, error)
    } else if is(ErrorCode::ToolServerError) {
        refusal(StatusCode::BAD_GATEWAY, Some(id), error)
    } else {
        // The answer to a message that was understood, as clients expect it.
        json_rpc(StatusCode::OK, &Response::err(id, error))
    }
}

/// Runs a request, which takes this memory: what is ready at once goes out in one piece, the rest as a
/// stream.
async fn run_request(
    endpoint: &Endpoint,
    session: Arc<McpSession>,
    log: Arc<EventLog>,
    request: RpcRequest,
    (credentials, held): (Credentials, HeldMemory),
) -> Reply {
    let streams = methods::streams(&request.method);
    let mut opened = Opened { log: Some(Arc::clone(&log)), stream: log.open() };
    let stream_id = opened.stream;
    let handled = methods::handle_request(&session, request, stream_id, credentials);
    let mut work = Box::pin(async move {
        let _held = held;
        handled.await
    });
    if let Ok(response) = tokio::time::timeout(AT_ONCE, &mut work).await {
        // Some clients do not take an error for the answer when it comes in a stream.
        if let Some(response) = &response
            && (response.outcome.is_err() || !streams)
            && log.is_untouched(stream_id)
        {
            log.end(stream_id);
            return json_rpc(StatusCode::OK, response);
        }
        let body = one_piece(&session, &log, stream_id, response.as_ref());
        return events("post_request_sse", body);
    }
    let sending = endpoint.sending(&session);
    let reader = log.read(stream_id);
    // The task below ends the stream.
    opened.log = None;
    // The answer is kept for a client that comes back for it, also when this one is gone.
    tokio::spawn(async move {
        if let Some(response) = work.await {
            log.send(stream_id, &response.to_text(), false);
        }
        log.end(stream_id);
    });
    events("post_request_sse", stream(reader, sending))
}

/// Runs the messages of a batch, which takes this memory: each response goes out as soon as it is
/// there.
async fn run_batch(
    endpoint: &Endpoint,
    session: &Arc<McpSession>,
    messages: Vec<Result<Message, Rejected>>,
    (credentials, held): (Credentials, HeldMemory),
) -> Result<Reply, Box<Reply>> {
    let log = events_of(session)?;
    let mut opened = Opened { log: Some(Arc::clone(&log)), stream: log.open() };
    let stream_id = opened.stream;
    let mut batch = Batch::begin(session, messages, stream_id, &credentials);
    if batch.is_silent() {
        batch.next().await;
        return Ok(empty(StatusCode::ACCEPTED));
    }
    let reader = log.read(stream_id);
    // The task below ends the stream.
    opened.log = None;
    tokio::spawn(async move {
        let _held = held;
        while let Some(response) = batch.next().await {
            log.send(stream_id, &response.to_text(), false);
        }
        log.end(stream_id);
    });
    Ok(events("post_request_sse", stream(reader, endpoint.sending(session))))
}

/// The events of a session over HTTP.
fn events_of(session: &McpSession) -> Result<Arc<EventLog>, Box<Reply>> {
    match &session.outlet {
        Outlet::Events(log) => Ok(Arc::clone(log)),
        Outlet::Lines(_) => {
            let error = invalid("the session is not one over HTTP");
            Err(Box::new(refusal(StatusCode::NOT_FOUND, None, error)))
        }
    }
}

/// A stream that ends when its request is dropped, unless the log is taken out before.
struct Opened {
    log: Option<Arc<EventLog>>,
    stream: StreamId,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(log) = &self.log {
            log.end(self.stream);
        }
    }
}

/// A finished stream as one piece, with the response, if there is one.
fn one_piece(
    session: &McpSession,
    log: &Arc<EventLog>,
    stream: StreamId,
    response: Option<&Response>,
) -> Body {
    if let Some(response) = response {
        log.send(stream, &response.to_text(), false);
    }
    let mut reader = log.read(stream);
    let (form, mut text) = (session.form(Priming::Bare), String::new());
    while let Some(Next::Event(event)) = reader.try_next(form) {
        text.push_str(&event);
    }
    drop(reader);
    log.end(stream);
    Body::from(text)
}
