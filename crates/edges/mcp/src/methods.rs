//! The methods of the protocol: one request or notification at a time.

mod call;
mod control;
mod initialize;
mod lists;
mod reads;

use std::sync::Arc;

use chio_core::capability::DpopProof;
use chio_cross_protocol::ReadKind;
use chio_cross_protocol::Shelf;
use chio_cross_protocol::jsonrpc::{Notification, Request, RequestId, RpcError};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) use call::Arguments;
pub(crate) use initialize::{Client, open};
pub(crate) use lists::page;

use crate::error::{invalid, not_ready};
use crate::events::StreamId;
use crate::negotiation::types_results;
use crate::session::{McpSession, Running, Stage};
use crate::tasks;

/// A request while it is answered.
pub(crate) struct Turn<'a> {
    pub(crate) session: &'a Arc<McpSession>,
    pub(crate) id: RequestId,
    pub(crate) params: Map<String, Value>,
    /// Where what belongs to it goes.
    pub(crate) stream: StreamId,
    pub(crate) cancellation: CancellationToken,
    /// Proof that the caller holds the key of its capability.
    pub(crate) proof: Option<Box<DpopProof>>,
    /// Its place among the requests that run.
    pub(crate) running: Option<Running>,
}

impl Turn<'_> {
    /// The client's name for the progress of this request.
    pub(crate) fn progress(&self) -> Option<Value> {
        let token = self.params.get("_meta")?.get("progressToken")?;
        (token.is_string() || token.is_i64() || token.is_u64()).then(|| token.clone())
    }
}

/// Whether answers to a method go over a stream that a client can go on with.
pub(crate) fn streams(method: &str) -> bool {
    matches!(method, "tools/call" | "tasks/result")
}

/// Answers one request.
pub(crate) async fn answer(
    session: &Arc<McpSession>,
    request: Request,
    stream: StreamId,
    proof: Option<Box<DpopProof>>,
) -> Result<Value, RpcError> {
    session.touch();
    let Request { id, method, params } = request;
    if id.is_null() {
        return Err(invalid("expected a request id that is not null"));
    }
    match method.as_str() {
        "ping" => return Ok(json!({})),
        "initialize" => {
            return Err(invalid("expected one `initialize` for a session, found another"));
        }
        _ => {}
    }
    if session.stage() != Stage::Ready {
        return Err(not_ready(&method));
    }
    let params = params.into_object()?;
    let (cancellation, running) = session.begin(&id)?;
    let running = Some(running);
    let turn = Turn { session, id, params, stream, cancellation, proof, running };
    let mut result = dispatch(&method, turn).await?;
    if types_results(&session.version)
        && let Value::Object(members) = &mut result
    {
        members.entry("resultType").or_insert_with(|| json!("complete"));
        if method.ends_with("/list") {
            members.entry("ttlMs").or_insert_with(|| json!(0));
            members.entry("cacheScope").or_insert_with(|| json!("private"));
        }
    }
    Ok(result)
}

async fn dispatch(method: &str, turn: Turn<'_>) -> Result<Value, RpcError> {
    match method {
        "tools/call" => call::answer(turn).await,
        "tools/list" => lists::answer(turn, Shelf::Tools).await,
        "resources/list" => lists::answer(turn, Shelf::Resources).await,
        "resources/templates/list" => lists::answer(turn, Shelf::ResourceTemplates).await,
        "prompts/list" => lists::answer(turn, Shelf::Prompts).await,
        "resources/read" => reads::answer(turn, ReadKind::Resource).await,
        "resources/subscribe" => reads::answer(turn, ReadKind::Subscribe).await,
        "resources/unsubscribe" => reads::answer(turn, ReadKind::Unsubscribe).await,
        "prompts/get" => reads::answer(turn, ReadKind::Prompt).await,
        "completion/complete" => reads::answer(turn, ReadKind::Completion).await,
        "logging/setLevel" => control::set_log_level(turn).await,
        "tasks/get" => tasks::get(turn).await,
        "tasks/list" => tasks::list(&turn),
        "tasks/result" => tasks::result(turn).await,
        "tasks/cancel" => tasks::cancel(turn).await,
        _ => Err(RpcError::method_not_found()),
    }
}

/// Takes a notification. One that nobody knows is dropped.
pub(crate) async fn take(session: &Arc<McpSession>, notification: Notification) {
    session.touch();
    let Ok(params) = notification.params.into_object() else { return };
    match notification.method.as_str() {
        "notifications/initialized" => session.become_ready(),
        "notifications/cancelled" => control::cancel(session, params),
        "notifications/roots/list_changed" => control::roots_changed(session).await,
        _ => {}
    }
}
