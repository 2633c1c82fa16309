//! What a receipt tells about the choice of a route.

use std::borrow::Cow;

use chio_core::canonical::{CanonicalError, Scratch};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ProtocolChain;
use crate::DiscoveryProtocol;

/// What the planner decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteSelectionDecision {
    /// The requested target is taken.
    Select,
    /// Another target is taken.
    Attenuate,
    /// No target is taken.
    Deny,
}

/// A target that was considered.
// Members stand in canonical order, so that the writer need not sort them on every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteCandidate {
    /// Why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability_reason: Option<Cow<'static, str>>,
    /// Whether it can be used.
    pub available: bool,
    /// The route's name.
    pub route_id: Cow<'static, str>,
    /// What the call would pass through.
    pub selected_protocols: ProtocolChain,
    /// The target.
    pub target_protocol: DiscoveryProtocol,
}

/// What was considered and what was taken.
// Members stand in canonical order, so that the writer need not sort them on every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteSelectionEvidence {
    /// Every target that was considered, the requested one first.
    pub candidates: Vec<RouteCandidate>,
    /// What was decided.
    pub decision: RouteSelectionDecision,
    /// The intent that was listened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governed_intent_id: Option<String>,
    /// Why, unless the first choice was simply taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    /// What the tool asks to be called by.
    pub requested_target_protocol: DiscoveryProtocol,
    /// The hash of request and decision.
    pub route_selection_id: String,
    /// What the call passes through; on a denial, what it would have.
    pub selected_protocols: ProtocolChain,
    /// The name of the route taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_route_id: Option<Cow<'static, str>>,
    /// The target taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_target_protocol: Option<DiscoveryProtocol>,
    /// What the caller speaks.
    pub source_protocol: DiscoveryProtocol,
}

impl RouteSelectionEvidence {
    /// The member of the receipt's metadata that evidence is signed in.
    pub const METADATA_MEMBER: &'static str = "route_selection";
}

/// What a selection's id is the hash of: what is absent is `null`. Members in canonical order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SelectionSeed<'a> {
    pub(super) decision: RouteSelectionDecision,
    pub(super) governed_intent_id: Option<&'a str>,
    pub(super) request_id: &'a str,
    pub(super) requested_target_protocol: DiscoveryProtocol,
    pub(super) selected_protocols: ProtocolChain,
    pub(super) selected_route_id: Option<&'a str>,
    pub(super) selected_target_protocol: Option<DiscoveryProtocol>,
    pub(super) source_protocol: DiscoveryProtocol,
}

impl SelectionSeed<'_> {
    pub(super) fn id(&self, scratch: &mut Scratch) -> Result<String, CanonicalError> {
        scratch.hash(self)
    }
}

/// The name of the route to a target.
pub(super) const fn route_id(target: DiscoveryProtocol) -> &'static str {
    match target {
        DiscoveryProtocol::Native => "native-route",
        DiscoveryProtocol::Http => "http-route",
        DiscoveryProtocol::Mcp => "mcp-route",
        DiscoveryProtocol::A2a => "a2a-route",
        DiscoveryProtocol::Acp => "acp-route",
        DiscoveryProtocol::OpenAi => "open_ai-route",
    }
}

/// The evidence as it enters the receipt's metadata.
///
/// # Errors
/// When the evidence cannot be written.
pub fn route_selection_metadata(
    evidence: &RouteSelectionEvidence,
) -> Result<Map<String, Value>, CanonicalError> {
    let evidence = serde_json::to_value(evidence)
        .map_err(|error| CanonicalError::Custom(error.to_string()))?;
    Ok(Map::from_iter([(RouteSelectionEvidence::METADATA_MEMBER.to_owned(), evidence)]))
}
