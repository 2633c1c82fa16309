//! The hosted transport: `POST`, `GET` and `DELETE` on `/mcp`.

mod body;
mod delete;
mod door;
mod get;
mod post;
mod reply;

use std::sync::Arc;

use axum::Router;
use axum::routing::post as on_post;
use chio_net::door::HttpDoor;

use crate::service::McpService;
use door::Entrance;

/// Where the protocol is served.
const PATH: &str = "/mcp";

impl McpService {
    /// Routes that serve the protocol at `/mcp`, for whomever the door lets in.
    pub fn router(&self, door: impl Into<Arc<HttpDoor>>) -> Router {
        let entrance = Entrance::new(self.shared.clone(), door.into());
        Router::new()
            .route(PATH, on_post(post::handle).get(get::handle).delete(delete::handle))
            .with_state(entrance)
    }
}
