//! The call chain of a governed call: the one parent it names, and the evidence for it.
//!
//! A caller's claim is [`EvidenceClass::Asserted`]. It becomes `observed` when something that the
//! kernel sees itself agrees, and `verified` only with an upstream proof that was accepted.

mod continuation;
mod proof;

use serde::{Deserialize, Serialize};

pub use continuation::{Audience, ContinuationToken};
pub use proof::{AcceptedProof, UpstreamProof};

use crate::crypto::PublicKey;
use crate::session::SessionAnchorReference;
use crate::signed::ArtifactError;
use crate::window::WindowError;

/// The call that a call continues: a pointer to its one parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallChainContext {
    /// What all calls of the chain share.
    pub chain_id: String,
    /// The parent's request.
    pub parent_request_id: String,
    /// The parent's receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_receipt_id: Option<String>,
    /// Who began the chain.
    pub origin_subject: String,
    /// Who delegated the call.
    pub delegator_subject: String,
}

/// How strong the evidence for a call's parent is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceClass {
    /// The caller claims it.
    #[default]
    Asserted,
    /// Something that the kernel sees agrees.
    Observed,
    /// Upstream has signed it.
    Verified,
}

/// Evidence that agrees with a call's claim about its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceSource {
    /// The request that runs in the same session is the parent.
    SessionParentRequestLineage,
    /// The parent's receipt is in the kernel's own log.
    LocalParentReceiptLinkage,
    /// The capability's last link was made by the delegator.
    CapabilityDelegatorSubject,
    /// The capability's first link was made by the origin.
    CapabilityOriginSubject,
    /// The delegator has signed an [`UpstreamProof`].
    UpstreamDelegatorProof,
}

/// The call chain of a receipt's call, and the evidence for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallChainProvenance {
    /// The parent.
    #[serde(flatten)]
    pub context: CallChainContext,
    /// How strong the evidence is; always written.
    #[serde(default)]
    pub evidence_class: EvidenceClass,
    /// The evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence_sources: Vec<EvidenceSource>,
    /// The proof that was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_proof: Option<UpstreamProof>,
    /// What the caller claimed, where the kernel knows otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asserted_context: Option<CallChainContext>,
    /// The continuation token that was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation_token_id: Option<String>,
    /// The session of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_anchor_id: Option<String>,
    /// The statement that ties this receipt to its parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt_lineage_statement_id: Option<String>,
}

impl CallChainProvenance {
    /// The class follows from the evidence: verified with a proof, else observed with any source,
    /// else asserted.
    pub fn new(
        context: CallChainContext,
        mut sources: Vec<EvidenceSource>,
        proof: Option<AcceptedProof>,
    ) -> Self {
        // INVARIANT: this source and a proof that was accepted come together or not at all.
        sources.retain(|source| *source != EvidenceSource::UpstreamDelegatorProof);
        if proof.is_some() {
            sources.push(EvidenceSource::UpstreamDelegatorProof);
        }
        let evidence_class = match (&proof, sources.is_empty()) {
            (Some(_), _) => EvidenceClass::Verified,
            (None, false) => EvidenceClass::Observed,
            (None, true) => EvidenceClass::Asserted,
        };
        Self {
            context,
            evidence_class,
            evidence_sources: sources,
            upstream_proof: proof.map(|proof| proof.0),
            asserted_context: None,
            continuation_token_id: None,
            session_anchor_id: None,
            receipt_lineage_statement_id: None,
        }
    }

    /// The caller's claim, without evidence.
    pub fn asserted(context: CallChainContext) -> Self {
        Self::new(context, Vec::new(), None)
    }
}

/// What the kernel knows of a call that names a parent.
#[derive(Debug, Clone, Copy)]
pub struct CurrentCall<'a> {
    /// The time, in Unix seconds.
    pub now: u64,
    /// The call's own request.
    pub request_id: &'a str,
    /// The request that runs and makes this call, if it is a nested one.
    pub live_parent: Option<&'a str>,
    /// The subject key of the caller.
    pub subject: &'a PublicKey,
    /// The server that is to run the tool.
    pub server_id: &'a str,
    /// The tool.
    pub tool_name: &'a str,
    /// The hash of the call's intent.
    pub intent_hash: &'a str,
    /// How the capability came to the caller, if it was delegated.
    pub delegation: Option<DelegationEnds<'a>>,
    /// The hash of the parent's receipt, if the kernel has it.
    pub parent_receipt_hash: Option<&'a str>,
    /// The parent's session, if the kernel knows it.
    pub parent_anchor: Option<&'a SessionAnchorReference>,
}

/// The two ends of a capability's delegation chain.
#[derive(Debug, Clone, Copy)]
pub struct DelegationEnds<'a> {
    /// Who made the first link.
    pub origin: &'a PublicKey,
    /// Who made the last link.
    pub delegator: &'a PublicKey,
    /// The capability that the last link delegates.
    pub capability_id: &'a str,
    /// The hash of the last link.
    pub link_hash: &'a str,
}

/// Why a call's claim about its parent was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallChainError {
    /// A member is blank.
    #[error("expected `{0}` to say something, found it blank")]
    Blank(&'static str),
    /// The call names itself.
    #[error("expected a parent other than the call itself, found `{0}`")]
    OwnParent(String),
    /// A member differs from what the kernel knows.
    #[error("expected `{member}` to be {}, found {}", shown(.expected), shown(.found))]
    Mismatch {
        /// The member.
        member: &'static str,
        /// What it should be.
        expected: Option<String>,
        /// What it is.
        found: Option<String>,
    },
    /// Without a delegation there is no delegator to sign a proof.
    #[error("expected a delegated capability with an upstream proof, found one without delegation")]
    Undelegated,
    /// The signer is not trusted for this.
    #[error("expected a signer who is {expected}, found `{found}`")]
    Signer {
        /// The signers that are.
        expected: &'static str,
        /// The signer.
        found: PublicKey,
    },
    /// It does not hold now.
    #[error("the call chain's evidence does not hold now: {0}")]
    Window(#[from] WindowError),
    /// Its signature was not accepted.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
}

fn shown(value: &Option<String>) -> String {
    value.as_ref().map_or_else(|| "absent".to_owned(), |value| format!("`{value}`"))
}

/// Refuses a member that is not as expected.
fn require<'a>(
    member: &'static str,
    expected: impl Into<Option<&'a str>>,
    found: impl Into<Option<&'a str>>,
) -> Result<(), CallChainError> {
    let (expected, found) = (expected.into(), found.into());
    if expected == found {
        return Ok(());
    }
    let [expected, found] = [expected, found].map(|value| value.map(str::to_owned));
    Err(CallChainError::Mismatch { member, expected, found })
}

impl CallChainContext {
    /// Checks the caller's claim against the call itself, and returns the evidence.
    ///
    /// # Errors
    /// When a member is blank, or the kernel knows it to be otherwise.
    pub fn check(&self, call: &CurrentCall<'_>) -> Result<Vec<EvidenceSource>, CallChainError> {
        self.check_blank()?;
        if self.parent_request_id == call.request_id {
            return Err(CallChainError::OwnParent(self.parent_request_id.clone()));
        }
        let mut sources = Vec::new();
        if let Some(parent) = call.live_parent {
            require("parentRequestId", parent, self.parent_request_id.as_str())?;
            sources.push(EvidenceSource::SessionParentRequestLineage);
        }
        if let Some(delegation) = call.delegation {
            let [delegator, origin] =
                [delegation.delegator, delegation.origin].map(|key| key.to_hex());
            require("delegatorSubject", &*delegator, self.delegator_subject.as_str())?;
            require("originSubject", &*origin, self.origin_subject.as_str())?;
            sources.push(EvidenceSource::CapabilityDelegatorSubject);
            sources.push(EvidenceSource::CapabilityOriginSubject);
        }
        Ok(sources)
    }

    fn check_blank(&self) -> Result<(), CallChainError> {
        let members = [
            ("chainId", Some(&self.chain_id)),
            ("parentRequestId", Some(&self.parent_request_id)),
            ("parentReceiptId", self.parent_receipt_id.as_ref()),
            ("originSubject", Some(&self.origin_subject)),
            ("delegatorSubject", Some(&self.delegator_subject)),
        ];
        let blank = |value: Option<&String>| value.is_some_and(|value| value.trim().is_empty());
        match members.into_iter().find(|(_, value)| blank(*value)) {
            Some((member, _)) => Err(CallChainError::Blank(member)),
            None => Ok(()),
        }
    }

    /// Checks that a signed context equals this one.
    fn require_same(&self, signed: &Self) -> Result<(), CallChainError> {
        require("chainId", &*self.chain_id, &*signed.chain_id)?;
        require("parentRequestId", &*self.parent_request_id, &*signed.parent_request_id)?;
        let [own, other] = [self, signed].map(|context| context.parent_receipt_id.as_deref());
        require("parentReceiptId", own, other)?;
        require("originSubject", &*self.origin_subject, &*signed.origin_subject)?;
        require("delegatorSubject", &*self.delegator_subject, &*signed.delegator_subject)
    }
}

#[cfg(test)]
mod tests;
