//! What makes a call governed: its intent, its approval, its call chain and its model.
//!
//! Everything here is part of requests and receipts. The checks depend on their arguments alone;
//! what needs a store, such as single use, is for the kernel.

mod approval;
mod call_chain;
mod intent;
mod model;
mod nonce;
mod transaction;

pub use approval::{ApprovalDecision, ApprovalError, ApprovalTerms, ApprovalToken};
pub use call_chain::{
    AcceptedProof, Audience, CallChainContext, CallChainError, CallChainProvenance,
    ContinuationToken, CurrentCall, DelegationEnds, EvidenceClass, EvidenceSource, UpstreamProof,
};
pub use intent::{
    Autonomy, Commerce, GovernedTransactionIntent, MeteredBilling, MeteredQuote, RouteHints,
    RouteHintsError, RuntimeAttestation, SettlementMode,
};
pub use model::{ModelMetadata, ProvenanceClass, RecordedModel};
pub use nonce::{ExecutionNonce, NonceBinding, NonceBody, NonceError};
pub use transaction::{ApprovalRecord, AssuranceRecord, GovernedTransactionReceipt};

#[cfg(test)]
pub(crate) mod tests;
