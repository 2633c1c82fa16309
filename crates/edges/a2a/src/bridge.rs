//! A2A as a protocol that calls cross from.

use chio_cross_protocol::{
    CapabilityBridge, CapabilityRefError, CrossProtocolCapabilityRef, DiscoveryProtocol,
};
use serde_json::{Value, json};

use crate::arguments::Names;

/// A2A: messages may refer to a capability in `metadata.chio.capabilityRef`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct A2aBridge;

/// A message to a skill, once its task is known.
pub(crate) struct A2aEnvelope<'a> {
    pub(crate) skill_id: &'a str,
    pub(crate) names: &'a Names<'a>,
    /// The reference that the message carries.
    pub(crate) reference: Option<CrossProtocolCapabilityRef>,
    /// Whether the reference is to a capability of the caller's own organisation, and not to the
    /// one that the call is made with.
    pub(crate) is_foreign: bool,
}

impl CapabilityBridge for A2aBridge {
    type Envelope<'a> = A2aEnvelope<'a>;

    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::A2a
    }

    fn extract(
        &self,
        envelope: &A2aEnvelope<'_>,
    ) -> Result<Option<CrossProtocolCapabilityRef>, CapabilityRefError> {
        Ok(envelope.reference.clone().filter(|_| !envelope.is_foreign))
    }

    fn protocol_context(&self, envelope: &A2aEnvelope<'_>) -> Option<Value> {
        let names = envelope.names;
        let mut context = json!({
            "skillId": envelope.skill_id,
            "contextId": names.context_id,
            "taskId": names.task_id,
        });
        let foreign = envelope.reference.as_ref().filter(|_| envelope.is_foreign);
        if let Value::Object(members) = &mut context {
            members.extend(names.message_id.map(|id| ("messageId".to_owned(), json!(id))));
            members.extend(foreign.map(|it| ("foreignCapabilityRef".to_owned(), json!(it))));
        }
        Some(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_of_the_call_or_of_another_organisation() {
        let reference = CrossProtocolCapabilityRef {
            chio_capability_id: "cap-1".to_owned(),
            origin_protocol: A2aBridge.protocol(),
            parent_capability_hash: "0".repeat(64),
            protocol_context: None,
        };
        let names = Names { message_id: Some("m-1"), context_id: "c-1", task_id: "t-1" };
        let ids = json!({
            "skillId": "read", "contextId": "c-1", "taskId": "t-1", "messageId": "m-1",
        });
        for is_foreign in [false, true] {
            let reference = Some(reference.clone());
            let envelope = A2aEnvelope { skill_id: "read", names: &names, reference, is_foreign };
            let reference = envelope.reference.clone();
            let mut context = ids.clone();
            if is_foreign {
                context["foreignCapabilityRef"] = json!(reference);
            }
            let extracted = reference.filter(|_| !is_foreign);
            assert_eq!(A2aBridge.extract(&envelope).unwrap(), extracted);
            assert_eq!(A2aBridge.protocol_context(&envelope), Some(context));
        }
    }
}
