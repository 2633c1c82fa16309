//! What the native protocol says about itself.

use chio_core::message::ToolCallRequest;
use chio_cross_protocol::{
    CapabilityBridge, CapabilityRefError, CrossProtocolCapabilityRef, DiscoveryProtocol,
};
use serde_json::Value;

/// The native protocol as a bridge. Its messages carry the token itself, so they never refer to
/// one, and they name servers and tools as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct NativeBridge;

impl CapabilityBridge for NativeBridge {
    type Envelope = ToolCallRequest;

    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::Native
    }

    fn extract(
        &self,
        _envelope: &ToolCallRequest,
    ) -> Result<Option<CrossProtocolCapabilityRef>, CapabilityRefError> {
        Ok(None)
    }

    fn protocol_context(&self, _envelope: &ToolCallRequest) -> Option<Value> {
        None
    }
}
