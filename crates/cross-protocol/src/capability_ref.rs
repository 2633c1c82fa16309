//! A capability as another protocol's message refers to it.

use chio_core::canonical::CanonicalError;
use chio_core::capability::PresentedToken;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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

/// Where JSON messages carry a reference.
const PLACE: [&str; 3] = ["metadata", "chio", "capabilityRef"];

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

    /// The reference in a JSON message, at `metadata.chio.capabilityRef`.
    ///
    /// # Errors
    /// When there is something else in its place, `null` included.
    pub fn in_message(message: &Value) -> Result<Option<Self>, CapabilityRefError> {
        let malformed = |problem: String| CapabilityRefError::Malformed(problem);
        let mut at = message;
        for (depth, name) in PLACE.iter().enumerate() {
            let Some(members) = at.as_object() else {
                let found = PLACE.get(..depth).unwrap_or_default().join(".");
                return Err(malformed(format!("expected an object at `{found}`")));
            };
            match members.get(*name) {
                None => return Ok(None),
                // Only the reference itself may not be null.
                Some(Value::Null) if depth + 1 < PLACE.len() => return Ok(None),
                Some(value) => at = value,
            }
        }
        let reference = Self::deserialize(at);
        reference.map(Some).map_err(|_| malformed("expected a capability reference".to_owned()))
    }

    /// Puts the reference into a JSON message, at `metadata.chio.capabilityRef`.
    ///
    /// # Errors
    /// When the message or what leads there is no object.
    pub fn into_message(&self, message: &mut Value) -> Result<(), CapabilityRefError> {
        let malformed = |problem: &str| CapabilityRefError::Malformed(problem.to_owned());
        let mut at = message;
        for name in PLACE {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            let members = at.as_object_mut();
            let members = members.ok_or_else(|| malformed("expected objects as metadata"))?;
            at = members.entry(name).or_insert(Value::Null);
        }
        *at = serde_json::to_value(self).map_err(|error| malformed(&error.to_string()))?;
        Ok(())
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

    // covers: CROSS-033
    #[test]
    fn a_reference_goes_into_a_message_and_comes_out_of_it() {
        let reference = reference();
        for message in
            [json!({}), json!({"metadata": null}), json!({"metadata": {"chio": {"a": 1}}})]
        {
            assert_eq!(CrossProtocolCapabilityRef::in_message(&message), Ok(None), "{message}");
            let mut carrying = message;
            reference.into_message(&mut carrying).unwrap();
            let found = CrossProtocolCapabilityRef::in_message(&carrying);
            assert_eq!(found, Ok(Some(reference.clone())), "{carrying}");
        }
        for message in [
            json!({"metadata": {"chio": {"capabilityRef": null}}}),
            json!({"metadata": {"chio": {"capabilityRef": {"chioCapabilityId": 1}}}}),
            json!({"metadata": 7}),
            json!({"metadata": {"chio": []}}),
            json!([]),
        ] {
            let found = CrossProtocolCapabilityRef::in_message(&message);
            assert!(matches!(found, Err(CapabilityRefError::Malformed(_))), "{message}");
        }
        assert!(reference.into_message(&mut json!({"metadata": 7})).is_err());
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
