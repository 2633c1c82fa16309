//! Checking a receipt: each rule on its own.

use super::sign::wrap;
use super::{BoundaryClass, ChioReceipt, ReceiptKind, TrustLevel};
use crate::canonical;
use crate::hash::sha256_hex;
use crate::signed::{ArtifactError, malformed, require_hint};

/// Members that are not part of what the id is the hash of.
pub(super) const UNIDENTIFIED: &[&str] = &["algorithm", "bbs_signature", "id", "signature"];

/// Every check on a receipt, separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptReport {
    /// Kind, boundary, trust, decision and outcome go together.
    pub coherence: Result<(), ArtifactError>,
    /// The id is the hash of the content.
    pub id: Result<(), ArtifactError>,
    /// The kernel key that the receipt names has signed it.
    pub signature: Result<(), ArtifactError>,
    /// The parameter hash is that of the stored parameters.
    pub parameter_hash: Result<(), ArtifactError>,
}

impl ReceiptReport {
    /// The checks that failed.
    pub fn failures(&self) -> impl Iterator<Item = &ArtifactError> {
        [&self.coherence, &self.id, &self.signature, &self.parameter_hash]
            .into_iter()
            .filter_map(|check| check.as_ref().err())
    }

    /// Whether every check holds. Trust in the key is not among them.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.failures().next().is_none()
    }
}

impl ChioReceipt {
    /// Runs every check and reports each.
    #[must_use]
    pub fn examine(&self) -> ReceiptReport {
        let content = canonical::to_vec_without(self, UNIDENTIFIED).map_err(ArtifactError::from);
        let content = content.as_ref().map_err(Clone::clone);
        let id = content.clone().and_then(|content| self.check_id(content));
        let signature = content.and_then(|content| self.check_wrapped(content));
        ReceiptReport {
            coherence: self.check_coherence(),
            id,
            signature,
            parameter_hash: self.check_parameter_hash(),
        }
    }

    /// Runs coherence, id, signature and parameter hash in order.
    ///
    /// # Errors
    /// With the first check that fails.
    pub fn verify(&self) -> Result<(), ArtifactError> {
        self.check_coherence()?;
        let content = canonical::to_vec_without(self, UNIDENTIFIED)?;
        self.check_id(&content)?;
        self.check_wrapped(&content)?;
        self.check_parameter_hash()
    }

    /// Checks that kind, boundary, trust, decision and outcome go together.
    ///
    /// # Errors
    /// When they do not.
    pub fn check_coherence(&self) -> Result<(), ArtifactError> {
        let (boundary, trust, decided) = match self.receipt_kind {
            ReceiptKind::MediatedDecision => (BoundaryClass::Prevent, TrustLevel::Mediated, true),
            ReceiptKind::TraceObservation => {
                (BoundaryClass::DetectOnly, TrustLevel::Verified, false)
            }
            ReceiptKind::AdvisoryEvaluation => {
                (BoundaryClass::AdvisoryOnly, TrustLevel::Advisory, false)
            }
        };
        let kind = self.receipt_kind;
        if self.boundary_class != boundary || self.trust_level != trust {
            return Err(malformed(format!(
                "expected {boundary:?} and {trust:?} for {kind:?}, found {:?} and {:?}",
                self.boundary_class, self.trust_level
            )));
        }
        if self.decision.is_some() != decided || self.observation_outcome.is_some() == decided {
            let expected = if decided { "a decision" } else { "an observation outcome" };
            return Err(malformed(format!("expected {expected} and nothing else for {kind:?}")));
        }
        Ok(())
    }

    fn check_id(&self, content: &[u8]) -> Result<(), ArtifactError> {
        let expected = sha256_hex(content);
        if self.id == expected {
            return Ok(());
        }
        Err(malformed(format!("expected id `{expected}`, the hash of the content, found another")))
    }

    /// Checks the signature over content and id as they stand, right or wrong.
    fn check_wrapped(&self, content: &[u8]) -> Result<(), ArtifactError> {
        require_hint(self.algorithm, &self.signature)?;
        // An id with a quote in it would not stay a string in the wrapper.
        if !self.id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(malformed("expected a hash as the signed id, found another text"));
        }
        Ok(self.kernel_key.check(&wrap(content, &self.id), &self.signature)?)
    }

    fn check_parameter_hash(&self) -> Result<(), ArtifactError> {
        if canonical::hash(&self.action.parameters)? == self.action.parameter_hash {
            return Ok(());
        }
        Err(malformed("expected the hash of the stored parameters, found another"))
    }
}
