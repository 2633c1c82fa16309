//! The hosted transport: `POST`, `GET` and `DELETE` on `/mcp`.

mod body;
mod delete;
mod endpoint;
mod get;
mod post;
mod reply;

use std::sync::Arc;

use axum::Router;
use axum::routing::post as on_post;
use chio_edge::auth::HttpAuth;

use crate::service::McpService;
use endpoint::Endpoint;

/// Where the protocol is served.
pub(crate) const PATH: &str = "/mcp";
/// The same as some clients write it.
const SLASHED: &str = "/mcp/";

impl McpService {
    /// Routes that serve the protocol at `/mcp`.
    pub(crate) fn router(&self, auth: Arc<HttpAuth>) -> Router {
        let endpoint = Endpoint::new(Arc::clone(&self.shared), auth);
        let answers = || on_post(post::answer).get(get::answer).delete(delete::answer);
        // No redirect: clients would send their body again, or not.
        Router::new().route(PATH, answers()).route(SLASHED, answers()).with_state(endpoint)
    }
}
