//! What A2A says about itself to the substrate.

use chio_cross_protocol::{
    CapabilityBridge, CapabilityRefError, CrossProtocolCapabilityRef, DiscoveryProtocol,
};
use serde_json::{Value, json};

/// A2A as a bridge. The params of a message may refer to a capability in
/// `metadata.chio.capabilityRef`.
#[derive(Debug, Clone, Copy, Default)]
pub struct A2aBridge;

impl CapabilityBridge for A2aBridge {
    /// The params of a message.
    type Envelope = Value;

    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::A2a
    }

    fn extract(
        &self,
        envelope: &Self::Envelope,
    ) -> Result<Option<CrossProtocolCapabilityRef>, CapabilityRefError> {
        CrossProtocolCapabilityRef::in_message(envelope)
    }

    fn inject(
        &self,
        envelope: &mut Self::Envelope,
        reference: &CrossProtocolCapabilityRef,
    ) -> Result<(), CapabilityRefError> {
        reference.into_message(envelope)
    }

    fn protocol_context(&self, envelope: &Self::Envelope) -> Option<Value> {
        let skill = envelope.pointer("/metadata/chio/targetSkillId")?.as_str()?;
        Some(json!({"targetSkillId": skill}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: CROSS-033, CROSS-034
    #[test]
    fn a_reference_is_read_where_it_was_put() {
        let reference = CrossProtocolCapabilityRef {
            chio_capability_id: "cap-1".to_owned(),
            origin_protocol: DiscoveryProtocol::A2a,
            parent_capability_hash: "0".repeat(64),
            protocol_context: None,
        };
        let mut params = json!({"message": {}, "metadata": {"chio": {"targetSkillId": "read"}}});
        assert_eq!(A2aBridge.protocol(), DiscoveryProtocol::A2a);
        assert_eq!(A2aBridge.extract(&params).unwrap(), None);
        A2aBridge.inject(&mut params, &reference).unwrap();
        assert_eq!(A2aBridge.extract(&params).unwrap(), Some(reference));
        assert_eq!(A2aBridge.protocol_context(&params), Some(json!({"targetSkillId": "read"})));
        let wrong = json!({"metadata": {"chio": {"capabilityRef": null}}});
        assert!(A2aBridge.extract(&wrong).is_err());
    }
}
