//! The authority that crosses a bridge: which token, how far narrowed, for which target.

use chio_core::capability::ChioScope;
use chio_core::text::snake_case;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::DiscoveryProtocol;
use chio_core::capability_ref::CrossProtocolCapabilityRef;

/// A capability on its way to a target.
// Members stand in canonical order, so that the writer need not sort them on every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CrossProtocolCapabilityEnvelope {
    /// What is left of the token's scope; never more than the token has.
    #[serde(deserialize_with = "read_scope")]
    pub attenuated_scope: ChioScope,
    /// The bridge that it crosses.
    pub bridge_id: String,
    /// When the call crossed it, in Unix seconds.
    pub bridged_at: u64,
    /// The token.
    pub capability_ref: CrossProtocolCapabilityRef,
    /// [`Self::SCHEMA`].
    pub schema: String,
    /// The target: the selected one, or on a planned denial the requested one.
    pub target_protocol: DiscoveryProtocol,
}

impl CrossProtocolCapabilityEnvelope {
    /// The value of `schema`.
    pub const SCHEMA: &'static str = "chio.cross-protocol-cap.v1";
}

/// Reads a scope with its members in either spelling: `server_id` as it is written, `serverId` as
/// some write it.
fn read_scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ChioScope, D::Error> {
    let mut scope = Value::deserialize(deserializer)?;
    if let Value::Object(members) = &mut scope {
        *members = respelled(std::mem::take(members));
        for grants in members.values_mut().filter_map(Value::as_array_mut) {
            for grant in grants.iter_mut().filter_map(Value::as_object_mut) {
                *grant = respelled(std::mem::take(grant));
            }
        }
    }
    serde_json::from_value(scope).map_err(serde::de::Error::custom)
}

fn respelled(members: Map<String, Value>) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (snake_case(&name), value)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request::tests::grant;

    // covers: CROSS-040, CROSS-041
    #[test]
    fn an_envelope_has_the_published_form() {
        let envelope = CrossProtocolCapabilityEnvelope {
            attenuated_scope: ChioScope { grants: vec![grant("s", "t")], ..ChioScope::default() },
            bridge_id: "b".to_owned(),
            bridged_at: 7,
            capability_ref: CrossProtocolCapabilityRef {
                chio_capability_id: "cap".to_owned(),
                origin_protocol: DiscoveryProtocol::A2a,
                parent_capability_hash: "h".to_owned(),
                protocol_context: Some(json!({"targetSkillId": "t"})),
            },
            schema: CrossProtocolCapabilityEnvelope::SCHEMA.to_owned(),
            target_protocol: DiscoveryProtocol::Native,
        };
        let expected = json!({
            "schema": "chio.cross-protocol-cap.v1",
            "capabilityRef": {
                "chioCapabilityId": "cap", "originProtocol": "a2a",
                "protocolContext": {"targetSkillId": "t"}, "parentCapabilityHash": "h",
            },
            "targetProtocol": "native",
            "attenuatedScope": {
                "grants": [{"server_id": "s", "tool_name": "t", "operations": ["invoke"]}],
            },
            "bridgedAt": 7,
            "bridgeId": "b",
        });
        assert_eq!(serde_json::to_value(&envelope).unwrap(), expected);
        let mut spelled = expected;
        spelled["attenuatedScope"] = json!({
            "grants": [{"serverId": "s", "toolName": "t", "operations": ["invoke"]}],
            "resourceGrants": [], "promptGrants": [],
        });
        assert_eq!(
            serde_json::from_value::<CrossProtocolCapabilityEnvelope>(spelled).unwrap(),
            envelope
        );
    }
}
