//! Ordered levels that grants ask for and calls declare.

use serde::{Deserialize, Serialize};

/// How well a runtime has shown what it is.
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

/// How far an agent acts on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutonomyTier {
    /// A person directs each act.
    Direct,
    /// A person delegated the act.
    Delegated,
    /// No person in the loop.
    Autonomous,
}

/// How careful a model is known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
