//! The transport: the cards, JSON-RPC and HTTP+JSON, at every mount.

mod cards;
mod endpoint;
mod list;
mod operations;
mod reply;
mod rest;
mod rpc;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::routing::{any, get, post};
use chio_edge::auth::HttpAuth;

use crate::card::Mount;
use crate::service::A2aService;
use endpoint::Endpoint;
use reply::Reply;

/// Where a card is, below a mount.
const CARD: &str = "/.well-known/agent-card.json";

impl A2aService {
    /// Routes that serve the agent.
    pub(crate) fn router(&self, auth: Arc<HttpAuth>) -> Router {
        let endpoint = Endpoint::new(Arc::clone(&self.shared), auth);
        let mut router = Router::new();
        for base in ["", "/strict", "/skills/{skill}"] {
            router = router.route(&format!("{base}{CARD}"), get(card));
            router = router.route(&format!("{base}/"), post(json_rpc));
            if !base.is_empty() {
                // No redirect: clients would send their body again, or not.
                router = router.route(base, post(json_rpc));
            }
            if self.shared.options.http_json {
                router = router.route(&format!("{base}/rest/{{*path}}"), any(http_json));
            }
        }
        router.with_state(endpoint)
    }
}

/// The mount that a request came by.
fn mount(request: &Request, params: &HashMap<String, String>) -> Mount {
    match params.get("skill") {
        Some(skill) => Mount::Skill(skill.clone()),
        None if request.uri().path().starts_with("/strict") => Mount::Strict,
        None => Mount::Root,
    }
}

async fn card(
    State(endpoint): State<Endpoint>,
    Path(params): Path<HashMap<String, String>>,
    request: Request,
) -> Reply {
    let mount = mount(&request, &params);
    cards::answer_card(&endpoint, &mount, &request.into_parts().0).await
}

async fn json_rpc(
    State(endpoint): State<Endpoint>,
    Path(params): Path<HashMap<String, String>>,
    request: Request,
) -> Reply {
    let mount = mount(&request, &params);
    let (head, body) = request.into_parts();
    // What is moved around by those who call this stays small.
    let answered = Box::pin(rpc::answer_json_rpc(&endpoint, &head, body, mount)).await;
    answered.unwrap_or_else(|reply| *reply)
}

async fn http_json(
    State(endpoint): State<Endpoint>,
    Path(params): Path<HashMap<String, String>>,
    request: Request,
) -> Reply {
    let mount = mount(&request, &params);
    let path = params.get("path").map(String::as_str).unwrap_or_default();
    let (head, body) = request.into_parts();
    Box::pin(rest::answer_http_json(&endpoint, &head, body, mount, path)).await
}
