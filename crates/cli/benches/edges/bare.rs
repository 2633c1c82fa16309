//! The floor: a bare axum server that answers every JSON-RPC request with its own params.

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Makes this program the server.
pub(crate) const ARGUMENT: &str = "--bare-server";

/// Serves until it is killed, and tells its port on standard output.
pub(crate) fn serve() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("listening on http://{}/mcp", listener.local_addr().unwrap());
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let router = Router::new().route("/mcp", post(echo));
        axum::serve(listener, router).await.unwrap();
    });
}

async fn echo(body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap();
    let text = &message["params"]["arguments"]["text"];
    let result = json!({"content": [{"type": "text", "text": text}]});
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    ([(CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}
