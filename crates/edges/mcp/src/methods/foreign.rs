//! Methods and notifications that are no part of MCP: for the server, if the session may do everything
//! there.

use std::sync::Arc;

use chio_core::capability::PresentedToken;
use chio_core::mcp::{is_foreign_notification, is_foreign_request};
use chio_cross_protocol::ReadKind;
use chio_net::jsonrpc::{RequestId, RpcError};
use serde_json::{Map, Value, json};

use super::reads::{Read, run};
use super::{Credentials, RequestContext};
use crate::events::NOTIFICATIONS;
use crate::methods::meta::take_meta;
use crate::session::McpSession;

/// Handles a request of an unknown method.
pub(super) async fn call(mut context: RequestContext<'_>, public: &str) -> Result<Value, RpcError> {
    let names = &context.session.shared.names;
    let Some((server, method)) = names.resolve(public).filter(|(_, it)| is_foreign_request(it))
    else {
        return Err(RpcError::method_not_found());
    };
    let (server, method) = (server.to_owned(), method.to_owned());
    let progress = context.progress();
    let mut params = std::mem::take(&mut context.params);
    let meta = take_meta(&mut params)?;
    context.params = request(&method, params);
    let tokens = context.tokens().await?;
    let token = token(&tokens, &server).or_else(|| tokens.first().cloned());
    run(context, Read { kind: ReadKind::Method, server, token, meta, progress }).await
}

/// Passes on a notification that is no part of MCP.
pub(super) async fn notify(
    session: &Arc<McpSession>,
    public: &str,
    mut params: Map<String, Value>,
) {
    let resolved = session.shared.names.resolve(public);
    // SECURITY: behind a server's name there may be one of MCP's own, which is not the client's to send.
    let Some((server, method)) = resolved.filter(|(_, it)| is_foreign_notification(it)) else {
        return;
    };
    let (Ok(meta), Ok(tokens)) = (take_meta(&mut params), session.tokens().await) else { return };
    // It has no answer that could say why not.
    let Some(token) = token(&tokens, server) else {
        return tracing::debug!(
            "a notification for `{server}` is not passed on: no grant allows it"
        );
    };
    let context = RequestContext {
        session,
        id: RequestId::NULL,
        params: request(method, params),
        stream: NOTIFICATIONS,
        cancellation: session.ended.clone(),
        credentials: Credentials::default(),
        running: None,
    };
    let (kind, server) = (ReadKind::Notification, server.to_owned());
    let read = Read { kind, server, token: Some(token), meta, progress: None };
    if let Err(error) = run(context, read).await {
        tracing::debug!("a notification is not passed on: {error}");
    }
}

/// The capability that allows everything on a server.
fn token(tokens: &[PresentedToken], server: &str) -> Option<PresentedToken> {
    let mut tokens = tokens.iter();
    tokens.find(|token| token.scope.whole_server_grant(server).is_some()).cloned()
}

fn request(method: &str, params: Map<String, Value>) -> Map<String, Value> {
    Map::from_iter([
        ("method".to_owned(), json!(method)),
        ("params".to_owned(), Value::Object(params)),
    ])
}
