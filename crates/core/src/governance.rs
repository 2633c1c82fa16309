//! What makes a call governed: its intent, its approval, where it comes from and which model asks.
//!
//! Everything here is carried by requests and receipts. The checks answer from their arguments
//! alone; what needs a store, such as single use, is the kernel's work.

mod approval;
mod call_chain;
mod intent;
mod model;
mod nonce;
mod transaction;
mod window;

pub use approval::{ApprovalDecision, ApprovalError, ApprovalTerms, ApprovalToken};
pub use call_chain::{
    AcceptedProof, Audience, CallChainContext, CallChainError, CallChainProvenance,
    ContinuationToken, CurrentCall, Delegation, EvidenceClass, EvidenceSource, UpstreamProof,
};
pub use intent::{
    Autonomy, Commerce, GovernedTransactionIntent, MeteredBilling, MeteredQuote, RouteHints,
    RouteHintsError, RuntimeAttestation, SettlementMode,
};
pub use model::{ModelMetadata, ProvenanceClass, RecordedModel};
pub use nonce::{ExecutionNonce, NonceBinding, NonceBody, NonceError};
pub use transaction::{ApprovalRecord, AssuranceRecord, GovernedTransactionReceipt};
pub use window::WindowError;

use crate::signed::{ArtifactError, malformed};

/// Refuses an artifact of another schema.
pub(crate) fn require_schema(expected: &str, found: &str) -> Result<(), ArtifactError> {
    if found == expected {
        return Ok(());
    }
    Err(malformed(format!("expected schema `{expected}`, found `{found}`")))
}

#[cfg(test)]
pub(crate) mod golden;
