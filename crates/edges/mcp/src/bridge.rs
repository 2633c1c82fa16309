//! MCP as a protocol that calls cross from.

use chio_cross_protocol::{
    CapabilityBridge, CapabilityRefError, CrossProtocolCapabilityRef, DiscoveryProtocol,
};
use serde_json::{Map, Value, json};

/// MCP: the params of `tools/call` may refer to a capability in `_meta.chio.capabilityRef`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct McpBridge;

impl CapabilityBridge for McpBridge {
    /// The params of a `tools/call`.
    type Envelope<'a> = Map<String, Value>;

    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::Mcp
    }

    fn extract(
        &self,
        params: &Map<String, Value>,
    ) -> Result<Option<CrossProtocolCapabilityRef>, CapabilityRefError> {
        let chio = params.get("_meta").and_then(|meta| meta.get("chio"));
        CrossProtocolCapabilityRef::in_metadata(chio.unwrap_or(&Value::Null))
    }

    fn protocol_context(&self, params: &Map<String, Value>) -> Option<Value> {
        let tool = params.get("name")?.as_str()?;
        Some(json!({"toolName": tool}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_read_from_the_params_and_the_context_is_the_tools_name() {
        let reference = json!({
            "chioCapabilityId": "cap-1", "originProtocol": "mcp",
            "parentCapabilityHash": "0".repeat(64),
        });
        for (meta, expected) in [
            (json!({"progressToken": 1}), Ok(false)),
            (json!({"chio": {"capabilityRef": reference}}), Ok(true)),
            (json!({"chio": {"capabilityRef": 7}}), Err(())),
            (json!({"chio": {"capabilityRef": null}}), Err(())),
            (json!({"chio": 7}), Err(())),
        ] {
            let params = json!({"name": "read", "_meta": meta});
            let params = params.as_object().unwrap();
            let found = McpBridge.extract(params);
            assert_eq!(found.map(|it| it.is_some()).map_err(drop), expected, "{params:?}");
            assert_eq!(McpBridge.protocol_context(params), Some(json!({"toolName": "read"})));
        }
    }
}
