//! `DELETE /mcp`: a client ends its session.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, Uri};

use super::endpoint::Endpoint;
use super::reply::{Reply, empty};
use crate::session::Stage;

/// Ends a session: what runs is called off, and its servers end what they keep for it.
pub(super) async fn handle(
    State(endpoint): State<Endpoint>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    uri: Uri,
    headers: HeaderMap,
) -> Reply {
    let principal = match endpoint.authenticate(&headers, &uri, from).await {
        Ok(principal) => principal,
        Err(reply) => return *reply,
    };
    let session = match endpoint.session(&headers, principal).await {
        Ok(session) => session,
        Err(reply) => return *reply,
    };
    endpoint.shared.sessions.end(&session, Stage::Deleted);
    tokio::spawn(async move { session.leave_servers().await });
    empty(StatusCode::NO_CONTENT)
}
