//! Which token features two peers have agreed on. Only federation exchanges it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::signed::{ArtifactError, malformed, require_schema};

/// The schema that every profile carries.
pub const NEGOTIATION_SCHEMA: &str = "chio.capabilities.v1";

/// The longest feature name.
const MAX_NAME_LEN: usize = 96;
/// The one feature that is on when nothing is said.
const ON_BY_DEFAULT: &str = "delegation_chain_binding";

/// A peer's features.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapabilityNegotiation {
    /// [`NEGOTIATION_SCHEMA`].
    pub schema: String,
    /// Which features are on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub features: BTreeMap<String, bool>,
}

impl CapabilityNegotiation {
    /// Whether a feature is on.
    #[must_use]
    pub fn has(&self, feature: &str) -> bool {
        self.features.get(feature).copied().unwrap_or(feature == ON_BY_DEFAULT)
    }

    /// Checks schema and names.
    ///
    /// # Errors
    /// When either is not as it should be.
    pub fn check(&self) -> Result<(), ArtifactError> {
        require_schema(NEGOTIATION_SCHEMA, &self.schema)?;
        let legal = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b'-')
        };
        match self
            .features
            .keys()
            .find(|name| name.is_empty() || name.len() > MAX_NAME_LEN || !name.bytes().all(legal))
        {
            None => Ok(()),
            Some(name) => {
                Err(malformed(format!("expected a feature name of [a-z0-9_.-], found `{name}`")))
            }
        }
    }
}
