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

/// Takes a request in at once, so that what is read after it can cancel it; the rest is handled as it
/// is waited for. There is no response when its client has cancelled it meanwhile.
pub(crate) fn handle_request(
    session: &Arc<McpSession>,
    request: Request,
    stream: StreamId,
    credentials: Credentials,
) -> impl Future<Output = Option<Response>> + Send + use<> {
    let (session, id) = (Arc::clone(session), request.id.clone());
    let admitted = admit(&session, request);
    async move {
        let admitted = match admitted {
            Ok(Some(admitted)) => admitted,
            Ok(None) => return Some(Response { id, outcome: Ok(json!({}).into()) }),
            Err(error) => return Some(Response::err(id, error)),
        };
        let cancellation = admitted.cancellation.clone();
        let outcome = run_request(&session, admitted, stream, credentials).await;
        // What ends with the session was not cancelled by the client.
        let cancelled = !session.ended.is_cancelled() && cancellation.is_cancelled();
        (!cancelled).then(|| Response { id, outcome: outcome.map(Into::into) })
    }
}

/// A request that runs.
struct Admitted {
    id: RequestId,
    method: String,
    params: Map<String, Value>,
    cancellation: CancellationToken,
    running: Running,
}

/// Counts a request among those that run; none for a ping.
fn admit(session: &Arc<McpSession>, request: Request) -> Result<Option<Admitted>, RpcError> {
    session.touch();
    let Request { id, method, params } = request;
    if id.is_null() {
        return Err(invalid("expected a request id that is not null"));
    }
    match method.as_str() {
        "ping" => return Ok(None),
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
    Ok(Some(Admitted { id, method, params, cancellation, running }))
}

async fn run_request(
    session: &Arc<McpSession>,
    admitted: Admitted,
    stream: StreamId,
    credentials: Credentials,
) -> Result<Value, RpcError> {
    let Admitted { id, method, params, cancellation, running } = admitted;
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

/// Takes a notification in: what it changes of the session is changed at once. What is left, for
/// servers, is done as it is waited for.
pub(crate) fn handle_notification(
    session: &Arc<McpSession>,
    notification: Notification,
) -> Option<impl Future<Output = ()> + Send + use<>> {
    session.touch();
    let Notification { method, params } = notification;
    let params = params.into_object().ok()?;
    match method.as_str() {
        "notifications/initialized" => session.become_ready(),
        "notifications/cancelled" => control::cancel(session, params),
        _ => {
            let session = Arc::clone(session);
            return Some(async move { tell_servers(&session, &method, params).await });
        }
    }
    None
}

async fn tell_servers(session: &Arc<McpSession>, method: &str, params: Map<String, Value>) {
    if method == "notifications/roots/list_changed" {
        control::roots_changed(session).await;
    } else if session.stage() == Stage::Ready && is_foreign_notification(method) {
        foreign::notify(session, method, params).await;
    }
}
