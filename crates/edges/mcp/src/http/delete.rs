//! `DELETE /mcp`: a client ends its session.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, Uri};

use super::door::Entrance;
use super::reply::{Reply, empty};
use crate::session::Stage;

/// Ends a session: what runs is called off, and its servers end what they keep for it.
pub(super) async fn handle(
    State(entrance): State<Entrance>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    uri: Uri,
    headers: HeaderMap,
) -> Reply {
    let client = match entrance.admit((&headers, &uri), from).await {
        Ok(client) => client,
        Err(reply) => return *reply,
    };
    let session = match entrance.session(&headers, &client) {
        Ok(session) => session,
        Err(reply) => return *reply,
    };
    entrance.shared.sessions.end(&session, Stage::Deleted);
    tokio::spawn(async move { session.leave_servers().await });
    empty(StatusCode::NO_CONTENT)
}
