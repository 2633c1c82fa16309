//! `GET /mcp`: what belongs to no request, and the rest of streams that broke off.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts;
use chio_core::registry::ErrorCode;
use chio_edge::body::check_accept;
use chio_net::jsonrpc::RpcError;

use super::body::{Sending, stream};
use super::endpoint::{Authenticated, Endpoint};
use super::reply::{Reply, events, no_stream, refusal};
use crate::error::{invalid, registered};
use crate::events::{Conflict, Priming};
use crate::outlet::Outlet;

/// The header that names the last event that a client has.
const LAST_EVENT: &str = "last-event-id";

/// Opens a stream, or goes on with one.
pub(super) async fn answer(State(endpoint): State<Endpoint>, head: Parts) -> Reply {
    open_stream(&endpoint, &head).await.unwrap_or_else(|reply| *reply)
}

async fn open_stream(endpoint: &Endpoint, head: &Parts) -> Result<Reply, Box<Reply>> {
    let Authenticated { principal, .. } = endpoint.authenticate(head).await?;
    let headers = &head.headers;
    if let Err(error) = check_accept(headers, "text/event-stream") {
        return Err(Box::new(refusal(error.status(), None, invalid(error.to_string()))));
    }
    let session = endpoint.session(headers, principal).await?;
    let Outlet::Events(log) = &session.outlet else { return Ok(no_stream()) };
    let log = Arc::clone(log);
    let last = headers.get(LAST_EVENT).map(|id| id.to_str().unwrap_or_default());
    let (read, mode) = match last {
        Some(last) => (log.resume(last), "get_sse_replay"),
        None => (log.read_notifications(), "get_sse_live"),
    };
    let reader = match read {
        Ok(reader) => reader,
        Err(Conflict::Finished) => return Ok(no_stream()),
        Err(conflict) => {
            let message = match conflict {
                Conflict::Busy => "expected no other notification stream of the session, found one",
                _ => "expected a `Last-Event-ID` within the events that are kept, found another",
            };
            let code = ErrorCode::InvalidRequestShape;
            let error = registered(RpcError::INVALID_REQUEST, message, code);
            return Err(Box::new(refusal(StatusCode::CONFLICT, None, error)));
        }
    };
    let shared = &endpoint.shared;
    let sending = Sending {
        rotate: shared.options.rotate_streams,
        form: session.form(Priming::Bare),
        until: session.ended.clone(),
    };
    Ok(events(mode, stream(reader, sending)))
}
