//! Cross-origin requests (the Fetch standard) of web pages that the operator names. No other page is
//! told anything, so its browser withholds the answers; the edges refuse its requests besides.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, VARY,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};

use crate::auth::HttpAuth;
use crate::reply::{Reply, empty};

/// The headers that pages may send, of all protocols that are spoken over HTTP.
const ALLOWED: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Accept, Last-Event-ID, MCP-Session-Id, MCP-Protocol-Version, \
     A2A-Version, A2A-Extensions, X-Chio-Capability, DPoP",
);
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// The headers of answers that pages may read.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate");
/// For how many seconds a browser may remember what it was told.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The same routes for pages that the listener's rules name as well.
pub fn with_named_pages(routes: Router, auth: &Arc<HttpAuth>) -> Router {
    if !auth.origins.names_pages() {
        return routes;
    }
    routes.layer(from_fn_with_state(Arc::clone(auth), answer))
}

async fn answer(State(auth): State<Arc<HttpAuth>>, request: Request, next: Next) -> Reply {
    let (head, body) = request.into_parts();
    let page = auth.origins.named_page(&head.headers).cloned();
    let Some(page) = page.filter(|_| auth.check_origin(&head).is_ok()) else {
        return next.run(Request::from_parts(head, body)).await;
    };
    let asks_first =
        head.method == Method::OPTIONS && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut reply = if asks_first {
        let mut reply = empty(StatusCode::NO_CONTENT);
        let headers = reply.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        reply
    } else {
        next.run(Request::from_parts(head, body)).await
    };
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, page);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, HeaderValue::from_static("Origin"));
    reply
}
