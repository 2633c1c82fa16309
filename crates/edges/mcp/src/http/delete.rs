//! `DELETE /mcp`: a client ends its session.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts;

use super::endpoint::{Authenticated, Endpoint};
use super::reply::{Reply, empty};
use crate::session::Stage;

/// Ends a session: what runs is cancelled, and its servers end what they keep for it.
pub(super) async fn answer(State(endpoint): State<Endpoint>, head: Parts) -> Reply {
    end_session(&endpoint, &head).await.unwrap_or_else(|reply| *reply)
}

async fn end_session(endpoint: &Endpoint, head: &Parts) -> Result<Reply, Box<Reply>> {
    let Authenticated { principal, .. } = endpoint.authenticate(head).await?;
    let session = endpoint.session(&head.headers, principal).await?;
    endpoint.shared.sessions.end(&session, Stage::Deleted);
    tokio::spawn(async move { session.leave_servers().await });
    Ok(empty(StatusCode::NO_CONTENT))
}
