//! What MCP says about itself to the substrate.

use chio_cross_protocol::{
    CapabilityBridge, CapabilityRefError, CrossProtocolCapabilityRef, DiscoveryProtocol,
};
use serde_json::{Map, Value, json};

/// MCP as a bridge. The params of `tools/call` may refer to a capability in
/// `_meta.chio.capabilityRef`.
#[derive(Debug, Clone, Copy, Default)]
pub struct McpBridge;

/// The member of params that is about the message, and not about its subject.
const META: &str = "_meta";

impl CapabilityBridge for McpBridge {
    /// The params of a `tools/call`.
    type Envelope = Map<String, Value>;

    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::Mcp
    }

    fn extract(
        &self,
        envelope: &Self::Envelope,
    ) -> Result<Option<CrossProtocolCapabilityRef>, CapabilityRefError> {
        match envelope.get(META).and_then(|meta| meta.get("chio")) {
            None => Ok(None),
            Some(chio) => {
                CrossProtocolCapabilityRef::in_message(&json!({"metadata": {"chio": chio}}))
            }
        }
    }

    fn inject(
        &self,
        envelope: &mut Self::Envelope,
        reference: &CrossProtocolCapabilityRef,
    ) -> Result<(), CapabilityRefError> {
        let meta = envelope.remove(META).unwrap_or_else(|| json!({}));
        let mut message = json!({"metadata": meta});
        reference.into_message(&mut message)?;
        if let Some(meta) = message.get_mut("metadata") {
            envelope.insert(META.to_owned(), meta.take());
        }
        Ok(())
    }

    fn protocol_context(&self, envelope: &Self::Envelope) -> Option<Value> {
        let tool = envelope.get("name")?.as_str()?;
        Some(json!({"toolName": tool}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_reference_is_read_where_it_was_put() {
        let reference = CrossProtocolCapabilityRef {
            chio_capability_id: "cap-1".to_owned(),
            origin_protocol: DiscoveryProtocol::Mcp,
            parent_capability_hash: "0".repeat(64),
            protocol_context: None,
        };
        let mut params = envelope(json!({"name": "read", "_meta": {"progressToken": 1}}));
        assert_eq!(McpBridge.extract(&params).unwrap(), None);
        McpBridge.inject(&mut params, &reference).unwrap();
        assert_eq!(McpBridge.extract(&params).unwrap(), Some(reference));
        assert_eq!(params["_meta"]["progressToken"], 1);
        assert_eq!(McpBridge.protocol_context(&params), Some(json!({"toolName": "read"})));
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for wrong in [json!({"capabilityRef": 7}), json!({"capabilityRef": null}), json!(7)] {
            let params = envelope(json!({"name": "read", "_meta": {"chio": wrong}}));
            assert!(McpBridge.extract(&params).is_err(), "{params:?}");
        }
    }
}
