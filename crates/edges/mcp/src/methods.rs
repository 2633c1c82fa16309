//! The methods of the protocol: dispatches one request or notification.

pub(crate) mod batch;
mod call;
mod control;
mod foreign;
mod initialize;
mod lists;
mod meta;
mod reads;

use std::sync::Arc;

use chio_core::capability::{DpopProof, PresentedToken};
use chio_core::mcp::is_foreign_notification;
use chio_cross_protocol::ListKind;
use chio_cross_protocol::ReadKind;
use chio_net::jsonrpc::{Notification, Request, RequestId, Response, RpcError};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) use initialize::{join_late, open};
pub(crate) use lists::page;

use crate::error::{invalid, not_ready, unauthenticated};
use crate::events::StreamId;
use crate::session::{McpSession, Running, Stage};
use crate::tasks;
use crate::wire_form::fit_result;

/// A request while it is handled.
pub(crate) struct RequestContext<'a> {
    pub(crate) session: &'a Arc<McpSession>,
    pub(crate) id: RequestId,
    pub(crate) params: Map<String, Value>,
    /// The stream of its messages.
    pub(crate) stream: StreamId,
    pub(crate) cancellation: CancellationToken,
    pub(crate) credentials: Credentials,
    /// Counts it among the requests that run.
    pub(crate) running: Option<Running>,
}

/// What a request shows besides what it says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credentials {
    /// The capability that it presents, verified; none where capabilities are issued.
    pub(crate) capability: Option<PresentedToken>,
    /// Proof that the caller holds the key of its capability.
    pub(crate) proof: Option<Box<DpopProof>>,
}

impl RequestContext<'_> {
    /// The tokens that the request may use.
    pub(crate) async fn tokens(&self) -> Result<Arc<[PresentedToken]>, RpcError> {
        // SECURITY: another request of the session may present another capability meanwhile.
        if let Some(capability) = &self.credentials.capability {
            return Ok(Arc::from([capability.clone()]));
        }
        self.session.tokens().await.map_err(|error| unauthenticated(error.to_string()))
    }

    /// The client's progress token for this request.
    pub(crate) fn progress(&self) -> Option<Value> {
        let token = self.params.get("_meta")?.get("progressToken")?;
        (token.is_string() || token.is_i64() || token.is_u64()).then(|| token.clone())
    }
}

/// Whether responses of a method go over a stream that a client can resume.
pub(crate) fn streams(method: &str) -> bool {
    matches!(method, "tools/call" | "tasks/result")
}

/// Handles a request. Gives no response when its client has cancelled it meanwhile.
pub(crate) async fn handle_request(
    session: &Arc<McpSession>,
    request: Request,
    stream: StreamId,
    credentials: Credentials,
) -> Option<Response> {
    let id = request.id.clone();
    let mut cancellation = None;
    let outcome = run_request(session, request, stream, credentials, &mut cancellation).await;
    // What ends with the session was not cancelled by the client.
    let ended = session.ended.is_cancelled();
    let cancelled = !ended && cancellation.is_some_and(|it: CancellationToken| it.is_cancelled());
    (!cancelled).then(|| Response { id, outcome: outcome.map(Into::into) })
}

async fn run_request(
    session: &Arc<McpSession>,
    request: Request,
    stream: StreamId,
    credentials: Credentials,
    cancelled: &mut Option<CancellationToken>,
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
    if !session.version.knows_method(&method) {
        return Err(RpcError::method_not_found());
    }
    let params = params.into_object()?;
    let (cancellation, running) = session.begin(&id)?;
    *cancelled = Some(cancellation.clone());
    let running = Some(running);
    let context =
        RequestContext { session, id, params, stream, cancellation, credentials, running };
    let mut result = dispatch(&method, context).await?;
    fit_result(session.version, &method, &mut result);
    if session.version.types_results()
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

async fn dispatch(method: &str, context: RequestContext<'_>) -> Result<Value, RpcError> {
    match method {
        "tools/call" => call::call_tool(context).await,
        "tools/list" => lists::list(context, ListKind::Tools).await,
        "resources/list" => lists::list(context, ListKind::Resources).await,
        "resources/templates/list" => lists::list(context, ListKind::ResourceTemplates).await,
        "prompts/list" => lists::list(context, ListKind::Prompts).await,
        "resources/read" => reads::read(context, ReadKind::Resource).await,
        "resources/subscribe" => reads::read(context, ReadKind::Subscribe).await,
        "resources/unsubscribe" => reads::read(context, ReadKind::Unsubscribe).await,
        "prompts/get" => reads::read(context, ReadKind::Prompt).await,
        "completion/complete" => reads::read(context, ReadKind::Completion).await,
        "logging/setLevel" => control::set_log_level(context).await,
        "tasks/get" => tasks::get(context).await,
        "tasks/list" => tasks::list(&context),
        "tasks/result" => tasks::result(context).await,
        "tasks/cancel" => tasks::cancel(context).await,
        other => foreign::call(context, other).await,
    }
}

/// Handles a notification.
pub(crate) async fn handle_notification(session: &Arc<McpSession>, notification: Notification) {
    session.touch();
    let Ok(params) = notification.params.into_object() else { return };
    match notification.method.as_str() {
        "notifications/initialized" => session.become_ready(),
        "notifications/cancelled" => control::cancel(session, params),
        "notifications/roots/list_changed" => control::roots_changed(session).await,
        other if session.stage() == Stage::Ready && is_foreign_notification(other) => {
            foreign::notify(session, other, params).await;
        }
        _ => {}
    }
}
