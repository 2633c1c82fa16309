//! What a client says that asks for nothing.

use std::sync::Arc;

use chio_cross_protocol::ClientNotification;
use chio_net::jsonrpc::{RequestId, RpcError};
use serde_json::{Map, Value, json};

use super::RequestContext;
use crate::error::invalid_params;
use crate::session::McpSession;

/// From which level on the client wants to read logs.
pub(super) async fn set_log_level(context: RequestContext<'_>) -> Result<Value, RpcError> {
    let level = context.params.get("level").and_then(Value::as_str);
    let Some(level) = level.filter(|level| context.session.set_log_level(level)) else {
        return Err(invalid_params("expected `level` to be a log level such as `info`"));
    };
    notify_servers(context.session, &ClientNotification::LogLevel(level.to_owned())).await;
    Ok(json!({}))
}

/// Cancels a running request.
pub(super) fn cancel(session: &McpSession, mut params: Map<String, Value>) {
    let id = params.remove("requestId").map(RequestId::try_from);
    if let Some(Ok(id)) = id {
        session.cancel(&id);
    }
}

/// The client's roots have changed.
pub(super) async fn roots_changed(session: &Arc<McpSession>) {
    notify_servers(session, &ClientNotification::RootsChanged).await;
}

async fn notify_servers(session: &McpSession, notification: &ClientNotification) {
    let shared = &session.shared;
    for server in shared.names.servers() {
        let kernel_session = &session.kernel_session;
        let sent = shared.orchestrator.tell(server, kernel_session, notification.clone()).await;
        if let Err(error) = sent {
            tracing::warn!("server {server}: {error}");
        }
    }
}
