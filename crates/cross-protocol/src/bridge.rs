//! What an edge says about its protocol.

use serde_json::Value;

use crate::DiscoveryProtocol;
use crate::capability_ref::{CapabilityRefError, CrossProtocolCapabilityRef};

/// The part of a bridge that differs from protocol to protocol. Edges implement it.
///
/// Planning and attenuation are not in it: they are the same for all.
pub trait CapabilityBridge: Send + Sync {
    /// A message that carries a call.
    type Envelope;

    /// The protocol.
    fn protocol(&self) -> DiscoveryProtocol;

    /// The capability reference that the caller put into the message, if any.
    ///
    /// # Errors
    /// When there is one and it cannot be read.
    fn extract(
        &self,
        envelope: &Self::Envelope,
    ) -> Result<Option<CrossProtocolCapabilityRef>, CapabilityRefError>;

    /// Puts a capability reference into a message that goes on, where the protocol has a place for
    /// it.
    ///
    /// # Errors
    /// When that place is taken by something else.
    fn inject(
        &self,
        envelope: &mut Self::Envelope,
        reference: &CrossProtocolCapabilityRef,
    ) -> Result<(), CapabilityRefError>;

    /// What the protocol calls the thing that is called, for the reference.
    fn protocol_context(&self, envelope: &Self::Envelope) -> Option<Value>;
}
