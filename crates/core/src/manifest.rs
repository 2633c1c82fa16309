//! Tool manifests: what a tool server offers, signed by the server.

mod check;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::crypto::{Keypair, PublicKey, Signature};
use crate::money::MonetaryAmount;
use crate::signed::{ArtifactError, Signed, malformed, signed_by};

/// The schema that every manifest carries.
pub const MANIFEST_SCHEMA: &str = "chio.manifest.v1";

/// A manifest and the key that signed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedManifest {
    /// What is offered.
    pub manifest: ToolManifest,
    /// The server's signature over the manifest.
    pub signature: Signature,
    /// The server's key; equal to the manifest's own.
    pub signer_key: PublicKey,
}

/// What a tool server offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolManifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: String,
    /// The server's name in grants and calls.
    pub server_id: String,
    /// The server's name for people.
    pub name: String,
    /// For people; written as `null` when absent.
    #[serde(default)]
    pub description: Option<String>,
    /// The server's version.
    pub version: String,
    /// At least one tool.
    pub tools: Vec<ToolDefinition>,
    /// Tools that the host runs itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_tools: Vec<ServerTool>,
    /// What the server needs; written as `null` when absent.
    #[serde(default)]
    pub required_permissions: Option<RequiredPermissions>,
    /// The server's key.
    pub public_key: PublicKey,
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolDefinition {
    /// The tool's name in grants and calls.
    pub name: String,
    /// For people and models.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Map<String, Value>,
    /// JSON Schema of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Map<String, Value>>,
    /// What a call costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pricing: Option<ToolPricing>,
    /// Whether a call changes anything.
    pub has_side_effects: bool,
    /// How long a call takes; written as `null` when absent.
    #[serde(default)]
    pub latency_hint: Option<LatencyHint>,
}

/// A tool that the host runs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerTool {
    /// Screen, mouse and keyboard.
    ComputerUse,
    /// A shell.
    Bash,
    /// A text editor.
    TextEditor,
}

/// How long a call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyHint {
    /// No time.
    Instant,
    /// Little.
    Fast,
    /// Some.
    Moderate,
    /// Much.
    Slow,
}

/// What a call costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPricing {
    /// How it is reckoned.
    pub pricing_model: PricingModel,
    /// The part that does not grow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_price: Option<MonetaryAmount>,
    /// The part for each unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_price: Option<MonetaryAmount>,
    /// The unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing_unit: Option<String>,
}

impl ToolPricing {
    /// What a call costs, where that does not depend on the call.
    pub const fn fixed_price(&self) -> Option<&MonetaryAmount> {
        match self.pricing_model {
            PricingModel::Flat => self.base_price.as_ref(),
            PricingModel::PerInvocation => self.unit_price.as_ref(),
            PricingModel::PerUnit | PricingModel::Hybrid => None,
        }
    }
}

/// How a price is reckoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PricingModel {
    /// A base price.
    Flat,
    /// A price for each call.
    PerInvocation,
    /// A price for each unit.
    PerUnit,
    /// Both.
    Hybrid,
}

/// What a server needs from its host. Each list is written as `null` when absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequiredPermissions {
    /// Paths it reads.
    #[serde(default)]
    pub read_paths: Option<Vec<String>>,
    /// Paths it writes.
    #[serde(default)]
    pub write_paths: Option<Vec<String>>,
    /// Hosts it talks to.
    #[serde(default)]
    pub network_hosts: Option<Vec<String>>,
    /// Environment variables it reads.
    #[serde(default)]
    pub environment_variables: Option<Vec<String>>,
}

impl ToolManifest {
    /// The manifest of a server with these tools, without a description and not signed.
    pub fn unsigned(
        server_id: impl Into<String>,
        name: impl Into<String>,
        version: impl Into<String>,
        tools: Vec<ToolDefinition>,
        public_key: PublicKey,
    ) -> Self {
        Self {
            schema: MANIFEST_SCHEMA.to_owned(),
            server_id: server_id.into(),
            name: name.into(),
            description: None,
            version: version.into(),
            tools,
            server_tools: Vec::new(),
            required_permissions: None,
            public_key,
        }
    }

    /// Signs the manifest with the server's key.
    ///
    /// # Errors
    /// When the manifest breaks a rule or names another key.
    pub fn signed(self, key: &Keypair) -> Result<SignedManifest, ArtifactError> {
        let signer_key = key.public_key().clone();
        SignedManifest { manifest: self, signature: Signature::blank(), signer_key }.signed(key)
    }
}

signed_by!(SignedManifest { manifest }, signer_key, SignedManifest::check_signer);

impl SignedManifest {
    /// Checks the manifest's rules, its keys and its signature.
    ///
    /// # Errors
    /// When one does not hold, or the signer is not `expected`.
    pub fn verify(&self, expected: Option<&PublicKey>) -> Result<(), ArtifactError> {
        if expected.is_some_and(|expected| *expected != self.signer_key) {
            return Err(malformed("expected another signer than the one that the manifest names"));
        }
        self.check_signature()
    }

    fn check_signer(&self) -> Result<(), ArtifactError> {
        self.manifest.check()?;
        if self.manifest.public_key == self.signer_key {
            return Ok(());
        }
        Err(malformed("expected the manifest's public key as signer, found another"))
    }
}

#[cfg(test)]
mod tests;
