//! The hosted transport: `POST`, `GET` and `DELETE` on `/mcp`.

mod body;
mod delete;
mod door;
mod get;
mod post;
mod reply;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::post as on_post;
use axum::serve::ListenerExt;
use chio_net::door::HttpDoor;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

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

/// Serves routes on a listener until `shutdown` is cancelled and the last connection has ended.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    // Answers are small and wanted at once.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(shutdown.cancelled_owned()).await
}
