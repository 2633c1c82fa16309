//! `GET /.well-known/agent-card.json`: what the agent is. It is for every client.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use parking_lot::Mutex;

use super::endpoint::Endpoint;
use super::reply::{Reply, card, empty, refused_rest};
use crate::card::{AuthRequirements, Card, Mount};
use crate::catalog::Catalog;
use crate::config::A2aEdgeConfig;

/// The cards that were made for the skills as they are.
#[derive(Default)]
pub(super) struct Cards(Mutex<Made>);

#[derive(Default)]
struct Made {
    of: Option<Arc<Catalog>>,
    cards: HashMap<Mount, Card>,
}

impl Cards {
    /// The card of a mount; made only when the skills have changed.
    fn get(
        &self,
        mount: &Mount,
        options: &A2aEdgeConfig,
        catalog: &Arc<Catalog>,
        auth: AuthRequirements,
        now: u64,
    ) -> Option<Card> {
        let mut made = self.0.lock();
        if !made.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, catalog)) {
            *made = Made { of: Some(Arc::clone(catalog)), cards: HashMap::new() };
        }
        if let Some(card) = made.cards.get(mount) {
            return Some(card.clone());
        }
        // As many as there are skills, and no more.
        let card = Card::new(mount, options, catalog, auth, now)?;
        made.cards.insert(mount.clone(), card.clone());
        Some(card)
    }
}

/// Answers with a card.
pub(super) async fn answer_card(endpoint: &Endpoint, mount: &Mount, head: &Parts) -> Reply {
    if let Err(error) = endpoint.auth.check_origin(head) {
        return refused_rest(&error.into());
    }
    let shared = &endpoint.shared;
    let catalog = shared.catalogs.refreshed(&shared.orchestrator, &shared.options).await;
    let auth = AuthRequirements {
        required: endpoint.auth.authenticator.is_required(),
        capabilities: endpoint.auth.capabilities,
    };
    let now = shared.orchestrator.now();
    match endpoint.cards.get(mount, &shared.options, &catalog, auth, now) {
        Some(found) => card(&found, is_known(&head.headers, &found)),
        None => empty(StatusCode::NOT_FOUND),
    }
}

/// Whether a client has the card that it asks for.
fn is_known(headers: &HeaderMap, card: &Card) -> bool {
    if !headers.contains_key(IF_NONE_MATCH) {
        // Only the date that the card was sent with: another one says nothing of this card.
        return headers.get(IF_MODIFIED_SINCE).is_some_and(|since| *since == *card.since);
    }
    let tags = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = tags.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == card.tag)
}
