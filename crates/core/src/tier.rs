//! Ordered levels that grants ask for and calls declare.

use serde::{Deserialize, Serialize};

/// How well a runtime is attested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeAssurance {
    /// Nothing shown.
    None,
    /// A claim without proof.
    Basic,
    /// Attested by the runtime's platform.
    Attested,
    /// Attested, and the attestation was verified.
    Verified,
}

/// How autonomously an agent acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum AutonomyTier {
    /// A person directs each act.
    Direct,
    /// A person delegated the act.
    Delegated,
    /// No person in the loop.
    Autonomous,
}

/// The safety rating of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SafetyTier {
    /// The lowest.
    Low,
    /// Ordinary.
    Standard,
    /// Above ordinary.
    High,
    /// The highest.
    Restricted,
}
