//! Other organisations' agents as where calls cross to.

use chio_core::capability_ref::{
    CAPABILITY_REF, CapabilityBridge, CapabilityRefError, CrossProtocolCapabilityRef,
};
use chio_core::protocol::DiscoveryProtocol;
use serde_json::{Map, Value, json};

/// A2A agents: their messages carry the reference in `metadata.chio`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct A2aAgentBridge;

impl CapabilityBridge for A2aAgentBridge {
    /// The member `chio` of a message's metadata.
    type Envelope<'a> = Map<String, Value>;

    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::A2a
    }

    fn inject(
        &self,
        chio: &mut Map<String, Value>,
        reference: &CrossProtocolCapabilityRef,
    ) -> Result<(), CapabilityRefError> {
        chio.insert(CAPABILITY_REF.to_owned(), json!(reference));
        Ok(())
    }
}
