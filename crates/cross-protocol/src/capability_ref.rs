//! A capability as another protocol's message refers to it.

use chio_core::canonical::CanonicalError;
use chio_core::capability::PresentedToken;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::DiscoveryProtocol;

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
    use crate::request::tests::token;

    fn reference() -> CrossProtocolCapabilityRef {
        let source = DiscoveryProtocol::A2a;
        CrossProtocolCapabilityRef::to_token(&token(&[]), source, None).unwrap()
    }

    #[test]
    fn a_reference_is_written_as_published() {
        let token = token(&[]);
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
    fn protocol_then_id_then_hash_must_fit() {
        let token = token(&[]);
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
