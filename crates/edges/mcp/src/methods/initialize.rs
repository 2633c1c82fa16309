//! `initialize`: a session is opened, with every server that it will use.

use std::sync::Arc;

use chio_core::capability::PresentedToken;
use chio_core::crypto::random_bytes;
use chio_core::registry::ErrorCode;
use chio_cross_protocol::{
    Caller as _, CapabilityBridge, KernelError, Offer, Principal, Refused, ServerNotification,
};
use chio_net::jsonrpc::RpcError;
use serde_json::{Map, Value, json};

use crate::bridge::McpBridge;
use crate::caller::McpCaller;
use crate::error::{invalid_params, registered, unauthenticated};
use crate::negotiation::{self, chio_protocol};
use crate::outlet::Outlet;
use crate::service::EdgeState;
use crate::session::{Handshake, McpSession};
use crate::wire_form::{fit_client, fit_result};

/// After which part of the time that an unused session lives it gives way to a new one, when there
/// is no room: after 5 seconds of 15 minutes.
const GIVES_WAY: u32 = 180;

/// Opens a session. `outlet` makes the channel to the client from the session's id.
pub(crate) async fn open(
    shared: &Arc<EdgeState>,
    principal: Principal,
    params: Map<String, Value>,
    outlet: impl FnOnce(&str) -> Outlet,
) -> Result<(Arc<McpSession>, Value), RpcError> {
    let version = negotiation::select(&params, &shared.options.versions)?;
    let mut capabilities = match params.get("capabilities") {
        None => Map::new(),
        Some(Value::Object(capabilities)) => capabilities.clone(),
        Some(_) => return Err(invalid_params("expected `capabilities` to be an object")),
    };
    fit_client(version, &mut capabilities);
    let limits = &shared.options.limits;
    let (max, each) = (limits.sessions, limits.sessions_per_principal);
    let owner = principal.owner_id();
    let full = || {
        let message = format!("expected at most {max} sessions, and {each} of one client");
        registered(RpcError::INTERNAL_ERROR, message, ErrorCode::InternalError)
    };
    let idle = limits.idle / GIVES_WAY;
    let mut reservation = loop {
        match shared.sessions.reserve(max) {
            Some(reservation) => break reservation,
            None if shared.sessions.give_way(None, idle) => {}
            None => return Err(full()),
        }
    };
    let refused = |error: Refused| unauthenticated(error.to_string());
    let presented = principal.capability.clone();
    let admitted = shared.admission.admit(McpBridge.protocol(), principal).await;
    let kernel_session = admitted.map_err(refused)?;
    // SECURITY: before admission a forged capability may name any subject, whose places these are not.
    while !reservation.assign(&owner, each) {
        if !shared.sessions.give_way(Some(&owner), idle) {
            return Err(full());
        }
    }
    let tokens = shared.admission.tokens(&kernel_session.principal).await.map_err(refused)?;
    let Some(first) = tokens.first().cloned() else {
        return Err(unauthenticated("there is no capability for this client"));
    };
    // A secret of the client: it cannot be guessed.
    let id = const_hex::encode(random_bytes::<32>());
    let handshake = Handshake {
        outlet: outlet(&id),
        id,
        owner,
        kernel_session,
        presented,
        version,
        client: capabilities,
        tokens,
    };
    let session = McpSession::new(shared, handshake);
    let offers = match join_servers(&session, &first).await {
        Ok(offers) => offers,
        Err(error) => {
            session.leave_servers().await;
            return Err(error);
        }
    };
    reservation.take(Arc::clone(&session));
    let mut result = result(&session, &offers);
    fit_result(version, "initialize", &mut result);
    Ok((session, result))
}

/// Begins the session with every server that has more than tools. One that cannot be had does not
/// keep the session from the others.
async fn join_servers(
    session: &Arc<McpSession>,
    token: &PresentedToken,
) -> Result<Vec<Offer>, RpcError> {
    let (mut offers, mut joined, mut failed) = (Vec::new(), 0, None);
    for server in session.shared.names.servers() {
        match join_server(session, server, token).await {
            Ok(offer) => {
                joined += 1;
                offers.extend(offer);
            }
            Err(error) => {
                let message = format!("server `{server}` cannot be had: {error}");
                tracing::error!("{message}");
                let code = ErrorCode::ToolServerError;
                failed = Some(registered(RpcError::INTERNAL_ERROR, message, code));
            }
        }
    }
    failed.filter(|_| joined == 0).map_or(Ok(offers), Err)
}

async fn join_server(
    session: &Arc<McpSession>,
    server: &str,
    token: &PresentedToken,
) -> Result<Option<Offer>, KernelError> {
    let (caller, client) = (McpCaller::for_session(session, server), session.client.clone());
    session.shared.orchestrator.begin_session(server, caller, token.clone(), client).await
}

/// Begins open sessions with a server that has come after them, and tells their clients.
pub(crate) async fn join_late(shared: &EdgeState, server: &str) {
    if !shared.names.servers().iter().any(|known| known == server) {
        return;
    }
    for session in shared.sessions.all() {
        let Ok(tokens) = session.tokens().await else { continue };
        let Some(token) = tokens.first() else { continue };
        if let Err(error) = join_server(&session, server, token).await {
            tracing::error!("server `{server}` cannot be had: {error}");
        }
        let method = "notifications/tools/list_changed".to_owned();
        let notification = ServerNotification { method, params: Map::new() };
        McpCaller::for_session(&session, server).notice(notification).await;
    }
}

/// What servers say under a capability; the first that says something is heard.
fn of_servers(offers: &[Offer], capability: &str) -> Map<String, Value> {
    let mut said = Map::new();
    for offer in offers {
        let Some(Value::Object(members)) = offer.capabilities.get(capability) else { continue };
        for (name, value) in members {
            said.entry(name).or_insert_with(|| value.clone());
        }
    }
    said
}

/// Whether clients take it for the name and the version of a server.
fn is_server_info(info: &Value) -> bool {
    ["name", "version"].iter().all(|name| info.get(name).is_some_and(Value::is_string))
}

/// What the client is told.
fn result(session: &McpSession, offers: &[Offer]) -> Value {
    let supported = &session.shared.options.versions;
    let has = |name: &str| offers.iter().any(|offer| offer.capabilities.contains_key(name));
    let subscribes = offers.iter().any(|offer| {
        let resources = offer.capabilities.get("resources");
        resources.and_then(|it| it.get("subscribe")) == Some(&Value::Bool(true))
    });
    let mut capabilities = Map::new();
    let mut insert = |name: &str, value: Value| drop(capabilities.insert(name.to_owned(), value));
    insert("tools", json!({"listChanged": true}));
    if has("resources") {
        insert("resources", json!({"subscribe": subscribes, "listChanged": true}));
    }
    if has("prompts") {
        insert("prompts", json!({"listChanged": true}));
    }
    if has("completions") {
        insert("completions", json!({}));
    }
    insert("logging", json!({}));
    insert("tasks", json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}));
    let protocol = chio_protocol(session.version, supported);
    let streaming = json!({"toolCallChunkNotifications": true});
    let mut experimental = of_servers(offers, "experimental");
    experimental.insert("chioProtocol".to_owned(), protocol);
    experimental.insert("chioToolStreaming".to_owned(), streaming);
    insert("experimental", Value::Object(experimental));
    let mut extensions = of_servers(offers, "extensions");
    // Tasks are ours, and none of an extension.
    extensions.remove("io.modelcontextprotocol/tasks");
    if !extensions.is_empty() {
        insert("extensions", Value::Object(extensions));
    }
    let chio = json!({"name": "chio", "title": "Chio", "version": env!("CARGO_PKG_VERSION")});
    // In front of one server, we are that server.
    let info = match offers {
        [only] if !session.shared.names.is_qualified() => only.server_info.clone(),
        _ => None,
    };
    let mut result = json!({
        "protocolVersion": session.version.name(),
        "capabilities": capabilities,
        "serverInfo": info.filter(is_server_info).unwrap_or_else(|| chio.clone()),
        "_meta": {"chio": {"serverInfo": chio}},
    });
    let instructions: Vec<&str> =
        offers.iter().filter_map(|offer| offer.instructions.as_deref()).collect();
    if let (false, Value::Object(members)) = (instructions.is_empty(), &mut result) {
        members.insert("instructions".to_owned(), json!(instructions.join("\n\n")));
    }
    result
}
