//! What a client says that asks for nothing.

use std::sync::Arc;

use chio_cross_protocol::Word;
use chio_cross_protocol::jsonrpc::{RequestId, RpcError};
use serde_json::{Map, Value, json};

use super::Turn;
use crate::error::invalid_params;
use crate::session::McpSession;

/// From which level on the client wants to read logs.
pub(super) async fn set_log_level(turn: Turn<'_>) -> Result<Value, RpcError> {
    let level = turn.params.get("level").and_then(Value::as_str);
    let Some(level) = level.filter(|level| turn.session.set_log_level(level)) else {
        return Err(invalid_params("expected `level` to be a log level such as `info`"));
    };
    tell(turn.session, &Word::LogLevel(level.to_owned())).await;
    Ok(json!({}))
}

/// Calls off a running request.
pub(super) fn cancel(session: &McpSession, mut params: Map<String, Value>) {
    let id = params.remove("requestId").map(RequestId::try_from);
    if let Some(Ok(id)) = id {
        session.cancel(&id);
    }
}

/// The client's roots have changed.
pub(super) async fn roots_changed(session: &Arc<McpSession>) {
    tell(session, &Word::RootsChanged).await;
}

async fn tell(session: &McpSession, word: &Word) {
    let shared = &session.shared;
    for server in shared.names.servers() {
        let told = shared.orchestrator.tell(server, &session.peer.session, word.clone()).await;
        if let Err(error) = told {
            shared.options.log.line(&format!("server {server}: {error}"));
        }
    }
}
