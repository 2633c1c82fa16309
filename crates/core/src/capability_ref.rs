//! A capability as messages of other protocols refer to it, and the trait that reads such a
//! reference from one message and writes it into another.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::CanonicalError;
use crate::capability::PresentedToken;
use crate::protocol::DiscoveryProtocol;

/// What differs from protocol to protocol when a call crosses from one to another. An edge
/// implements what it reads, an adapter what it writes.
///
/// Planning and attenuation are not in it: they are the same for all.
pub trait CapabilityBridge: Send + Sync {
    /// A message that carries a call.
    type Envelope<'a>;

    /// The protocol.
    fn protocol(&self) -> DiscoveryProtocol;

    /// The capability reference of an inbound message. The default is for protocols without one.
    ///
    /// # Errors
    /// When there is one and it is malformed.
    fn extract(
        &self,
        _envelope: &Self::Envelope<'_>,
    ) -> Result<Option<CrossProtocolCapabilityRef>, CapabilityRefError> {
        Ok(None)
    }

    /// Puts a capability reference into an outbound message. The default is for protocols over
    /// which no calls are passed on.
    ///
    /// # Errors
    /// When the message cannot carry one.
    fn inject(
        &self,
        _envelope: &mut Self::Envelope<'_>,
        _reference: &CrossProtocolCapabilityRef,
    ) -> Result<(), CapabilityRefError> {
        Err(CapabilityRefError::NotCarried(self.protocol()))
    }

    /// What the protocol calls the target of an inbound message, for the reference.
    fn protocol_context(&self, _envelope: &Self::Envelope<'_>) -> Option<Value> {
        None
    }
}

/// Refers to a capability by name and hash.
// Members stand in canonical order, so that the writer need not sort them on every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CrossProtocolCapabilityRef {
    /// The token's id.
    pub chio_capability_id: String,
    /// The protocol that the call came in on.
    pub origin_protocol: DiscoveryProtocol,
    /// SHA-256 of the whole signed token.
    pub parent_capability_hash: String,
    /// What that protocol calls the thing that is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_context: Option<Value>,
}

/// Why a capability reference does not fit the call that carries it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CapabilityRefError {
    /// It cannot be read.
    #[error("invalid request envelope: {0}")]
    Malformed(String),
    /// Messages of this protocol carry none.
    #[error("messages of {0} carry no capability reference")]
    NotCarried(DiscoveryProtocol),
    /// It names another protocol.
    #[error("invalid request envelope: expected origin protocol {expected}, found {found}")]
    Protocol {
        /// The protocol that the call came in on.
        expected: DiscoveryProtocol,
        /// The one named.
        found: DiscoveryProtocol,
    },
    /// It names another token.
    #[error("capability reference mismatch: expected `{expected}`, found `{found}`")]
    Capability {
        /// The token presented.
        expected: String,
        /// The one named.
        found: String,
    },
    /// It has another token's hash.
    #[error("invalid request envelope: expected the hash of the presented capability")]
    Hash,
    /// The token has no hash.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}

/// The member of a message's Chio metadata that is a reference.
pub const CAPABILITY_REF: &str = "capabilityRef";

impl CrossProtocolCapabilityRef {
    /// The reference to this token.
    ///
    /// # Errors
    /// When the token has no canonical form.
    pub fn to_token(
        token: &PresentedToken,
        origin_protocol: DiscoveryProtocol,
        protocol_context: Option<Value>,
    ) -> Result<Self, CanonicalError> {
        Ok(Self {
            chio_capability_id: token.id.clone(),
            origin_protocol,
            parent_capability_hash: token.hash()?.to_owned(),
            protocol_context,
        })
    }

    /// Reads the reference in the Chio metadata of a message, which are its `metadata.chio` or
    /// `_meta.chio`.
    ///
    /// # Errors
    /// When the metadata are no object, or their `capabilityRef` is malformed or null.
    pub fn in_metadata(chio: &Value) -> Result<Option<Self>, CapabilityRefError> {
        let malformed = |problem: &str| CapabilityRefError::Malformed(problem.to_owned());
        let members = match chio {
            Value::Null => return Ok(None),
            Value::Object(members) => members,
            _ => return Err(malformed("expected an object at `chio`")),
        };
        let Some(reference) = members.get(CAPABILITY_REF) else { return Ok(None) };
        // SECURITY: the parser's own message could repeat what was sent.
        let reference = Self::deserialize(reference);
        reference.map(Some).map_err(|_| malformed("expected a capability reference"))
    }

    /// Checks that this refers to the token presented, on the protocol that it came in on.
    ///
    /// # Errors
    /// With the first that differs: protocol, id, hash.
    pub fn check(
        &self,
        token: &PresentedToken,
        source: DiscoveryProtocol,
    ) -> Result<(), CapabilityRefError> {
        if self.origin_protocol != source {
            let found = self.origin_protocol;
            return Err(CapabilityRefError::Protocol { expected: source, found });
        }
        if self.chio_capability_id != token.id {
            let (expected, found) = (token.id.clone(), self.chio_capability_id.clone());
            return Err(CapabilityRefError::Capability { expected, found });
        }
        if self.parent_capability_hash != token.hash()? {
            return Err(CapabilityRefError::Hash);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::capability::{CapabilityToken, ChioScope, Validity};
    use crate::crypto::Keypair;

    /// A token whose signature is not checked here.
    fn token() -> PresentedToken {
        let key = |seed| Keypair::from_seed(&[seed; 32]).public_key().clone();
        let validity = Validity { issued_at: 100, expires_at: 200 };
        CapabilityToken::draft("cap-1", key(1), key(2), ChioScope::default(), validity).into()
    }

    fn reference() -> CrossProtocolCapabilityRef {
        let source = DiscoveryProtocol::A2a;
        CrossProtocolCapabilityRef::to_token(&token(), source, None).unwrap()
    }

    #[test]
    fn a_reference_is_written_as_published() {
        let token = token();
        let context = Some(json!({"targetSkillId": "lookup"}));
        let reference =
            CrossProtocolCapabilityRef::to_token(&token, DiscoveryProtocol::A2a, context).unwrap();
        let expected = json!({
            "chioCapabilityId": "cap-1", "originProtocol": "a2a",
            "protocolContext": {"targetSkillId": "lookup"},
            "parentCapabilityHash": token.hash().unwrap(),
        });
        assert_eq!(serde_json::to_value(reference).unwrap(), expected);
    }

    #[test]
    fn a_reference_is_read_from_metadata_and_nothing_else_is_taken_for_one() {
        let reference = reference();
        for chio in [json!(null), json!({}), json!({"other": 1})] {
            assert_eq!(CrossProtocolCapabilityRef::in_metadata(&chio), Ok(None), "{chio}");
        }
        let chio = json!({"capabilityRef": reference});
        assert_eq!(CrossProtocolCapabilityRef::in_metadata(&chio), Ok(Some(reference)));
        for chio in [
            json!({"capabilityRef": null}),
            json!({"capabilityRef": {"chioCapabilityId": 1}}),
            json!([]),
            json!(7),
        ] {
            let found = CrossProtocolCapabilityRef::in_metadata(&chio);
            assert!(matches!(found, Err(CapabilityRefError::Malformed(_))), "{chio}");
        }
    }

    #[test]
    fn protocol_then_id_then_hash_must_fit() {
        let token = token();
        let check = |change: fn(&mut CrossProtocolCapabilityRef)| {
            let mut reference = reference();
            change(&mut reference);
            reference.check(&token, DiscoveryProtocol::A2a).map_err(|error| error.to_string())
        };
        assert_eq!(check(|_| ()), Ok(()));
        let all = check(|reference| {
            reference.origin_protocol = DiscoveryProtocol::Mcp;
            reference.chio_capability_id.clear();
        });
        assert!(all.unwrap_err().contains("expected origin protocol a2a, found mcp"));
        let two = check(|reference| {
            reference.chio_capability_id = "cap-2".to_owned();
            reference.parent_capability_hash.clear();
        });
        assert!(two.unwrap_err().contains("expected `cap-1`, found `cap-2`"));
        let one = check(|reference| reference.parent_capability_hash.clear());
        assert!(one.unwrap_err().contains("expected the hash"));
    }
}
