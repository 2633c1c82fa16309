//! Receipts: the request, the decision and the outcome, signed by the kernel.
//!
//! A receipt's id is the hash of its content, and its signature is over id and content together.
//! Verification reports each check on its own; trust in the key is never assumed.

mod child;
mod content;
mod execution;
mod logged;
mod sign;
mod verify;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use child::{ChildOutcome, ChildReceipt, OperationKind, TerminalState};
pub use content::{ContentHash, NO_OUTPUT_HASH};
pub use execution::{EXECUTION_MEMBER, Execution};
pub use logged::LoggedReceipt;
pub use sign::{NONCE_MEMBER, ORIGINAL_METADATA_MEMBER, SealedReceipt};
pub use verify::ReceiptReport;

use crate::canonical::{self, CanonicalError};
use crate::crypto::{Algorithm, PublicKey, Signature};

/// A signed record of one decision or observation.
// Members stand in canonical order, so that the writer need not sort them on every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChioReceipt {
    /// What was asked.
    pub action: ToolCallAction,
    /// Who acted, and for whom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actor_chain: Vec<Actor>,
    /// An unsigned hint.
    #[serde(default, skip_serializing_if = "Algorithm::is_default")]
    pub algorithm: Option<Algorithm>,
    /// Selective disclosure, passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bbs_projection_version: Option<String>,
    /// Selective disclosure, passed on unchanged; not part of what is signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bbs_signature: Option<Map<String, Value>>,
    /// Whether the signer could prevent what it records.
    pub boundary_class: BoundaryClass,
    /// The token used.
    pub capability_id: String,
    /// The hash of what came back; see [`ContentHash`].
    pub content_hash: String,
    /// What was decided; only and always in a mediated decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The verdict of each guard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<GuardEvidence>,
    /// The hash of the content; a provisional name until the receipt is signed.
    pub id: String,
    /// The key that signed.
    pub kernel_key: PublicKey,
    /// Everything else that is signed.
    #[serde(default, skip_serializing_if = "crate::text::is_absent")]
    pub metadata: Option<Value>,
    /// What was seen; only and always where nothing was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation_outcome: Option<ObservationOutcome>,
    /// The policy in force.
    pub policy_hash: String,
    /// What the receipt records.
    pub receipt_kind: ReceiptKind,
    /// Whether the parameters are whole.
    pub redaction_mode: RedactionMode,
    /// The kernel's signature.
    pub signature: Signature,
    /// The caller's tenant, from its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// When it was signed, in Unix seconds.
    pub timestamp: u64,
    /// The tool called.
    pub tool_name: String,
    /// Who ran the tool.
    pub tool_origin: ToolOrigin,
    /// The server called.
    pub tool_server: String,
    /// How far the receipt may be relied on.
    pub trust_level: TrustLevel,
}

/// The parameters of a call and their hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallAction {
    /// The parameters as they are stored.
    pub parameters: Value,
    /// SHA-256 of their canonical form.
    pub parameter_hash: String,
}

impl ToolCallAction {
    /// The action of these parameters.
    ///
    /// # Errors
    /// When they have no canonical form.
    pub fn new(parameters: Value) -> Result<Self, CanonicalError> {
        let parameter_hash = canonical::hash(&parameters)?;
        Ok(Self { parameters, parameter_hash })
    }
}

/// What was decided about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Decision {
    /// It ran.
    Allow,
    /// It was refused, or its tool server failed; [`Execution`] says which.
    Deny {
        /// The reason.
        reason: String,
        /// The guard or stage that denied it.
        guard: String,
    },
    /// It was cancelled.
    Cancelled {
        /// The reason.
        reason: String,
    },
    /// It began and its end is not known.
    Incomplete {
        /// The reason.
        reason: String,
    },
}

/// What a receipt records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptKind {
    /// A call that the kernel decided on.
    MediatedDecision,
    /// Something that was seen happening.
    TraceObservation,
    /// Something that was judged without power over it.
    AdvisoryEvaluation,
}

/// Whether the signer could prevent what it records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundaryClass {
    /// It could prevent it.
    Prevent,
    /// It could only notice it.
    DetectOnly,
    /// It could only advise.
    AdvisoryOnly,
    /// It could not see it; never signable.
    CannotSee,
}

/// What became of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationOutcome {
    /// Seen.
    Observed,
    /// Judged.
    Evaluated,
    /// Lost.
    Dropped,
}

/// Who ran the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOrigin {
    /// The caller, through the kernel.
    CallerExecuted,
    /// A model provider, by its own report.
    HostExecutedProviderReported,
    /// A host, without the kernel.
    HostExecutedUnmediated,
}

/// Whether a receipt's parameters are whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedactionMode {
    /// As they came.
    None,
    /// Shortened.
    Summary,
    /// With secrets taken out.
    Redacted,
}

/// How far a receipt may be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustLevel {
    /// The kernel mediated the call.
    Mediated,
    /// Seen and checked.
    Verified,
    /// An opinion.
    Advisory,
}

/// An actor in the chain of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// The actor's id.
    pub actor_id: String,
    /// The kind of actor, such as an agent or a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_kind: Option<String>,
}

/// The verdict of one guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardEvidence {
    /// The name of the guard.
    pub guard_name: String,
    /// Whether it allowed.
    pub verdict: bool,
    /// What it found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

impl ChioReceipt {
    /// SHA-256 of the whole signed receipt, as continuation tokens carry it.
    ///
    /// # Errors
    /// When the receipt has no canonical form.
    pub fn hash(&self) -> Result<String, CanonicalError> {
        canonical::hash(self)
    }
}

#[cfg(test)]
mod tests;
