//! An approver's signed answer to one governed request.

use serde::{Deserialize, Serialize};

use crate::canonical::{self, CanonicalError};
use crate::crypto::{Algorithm, PublicKey, Signature};
use crate::hash::sha256_parts;
use crate::signed::{ArtifactError, Signed, require_hint, signed_by};
use crate::window::{Validity, WindowError};

/// An approver's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// The call may run.
    Approved,
    /// The call must not run.
    Denied,
}

/// An approver's answer to one request of one subject with one intent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalToken {
    /// The token's id, chosen by the approver.
    pub id: String,
    /// Who answers, and signs.
    pub approver: PublicKey,
    /// The subject key that asked.
    pub subject: PublicKey,
    /// The hash of the intent that was reviewed.
    pub governed_intent_hash: String,
    /// The request that was reviewed.
    pub request_id: String,
    /// The proposal that this is one vote of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_proposal_hash: Option<String>,
    /// The first second in which it holds, in Unix time.
    pub issued_at: u64,
    /// The first second in which it no longer holds, in Unix time.
    pub expires_at: u64,
    /// The answer.
    pub decision: ApprovalDecision,
    /// The signature's algorithm, unsigned.
    #[serde(default, skip_serializing_if = "Algorithm::is_default")]
    pub algorithm: Option<Algorithm>,
    /// The approver's signature over the rest.
    pub signature: Signature,
}

signed_by!(ApprovalToken, approver, |token| require_hint(token.algorithm, &token.signature));

/// What an approval has to fit.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalTerms<'a> {
    /// The time, in Unix seconds.
    pub now: u64,
    /// The request at hand.
    pub request_id: &'a str,
    /// The hash of its intent.
    pub intent_hash: &'a str,
    /// Who makes it.
    pub subject: &'a PublicKey,
    /// The trusted approvers.
    pub approvers: &'a [PublicKey],
}

/// The first check that an approval did not pass; the order is that of the variants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// It does not hold now.
    #[error("the approval does not hold now: {0}")]
    Window(#[from] WindowError),
    /// It answers another request.
    #[error("expected an approval of request `{expected}`, found one of `{found}`")]
    Request {
        /// The request at hand.
        expected: String,
        /// The one in the approval.
        found: String,
    },
    /// It answers another intent.
    #[error("expected an approval of intent hash `{expected}`, found one of `{found}`")]
    Intent {
        /// The hash of the intent at hand.
        expected: String,
        /// The one in the approval.
        found: String,
    },
    /// It answers another subject.
    #[error("expected an approval for subject `{expected}`, found one for `{found}`")]
    Subject {
        /// Who makes the request at hand.
        expected: PublicKey,
        /// The one in the approval.
        found: PublicKey,
    },
    /// The decision is `denied`.
    #[error("expected decision `approved`, found `denied`")]
    Denied,
    /// It is one vote of several, which alone approves nothing.
    #[error("expected an approval of its own, found a vote on a threshold proposal")]
    Vote,
    /// Its approver is not trusted.
    #[error("expected a trusted approver, found `{found}`")]
    Approver {
        /// The key in the approval.
        found: PublicKey,
    },
    /// Its signature was not accepted.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// It was made to hold for too long.
    #[error(
        "expected an approval for at most {} seconds, found {found}",
        ApprovalToken::MAX_LIFETIME
    )]
    Lifetime {
        /// Seconds between its ends.
        found: u64,
    },
}

impl ApprovalToken {
    /// The most seconds that an approval may hold.
    pub const MAX_LIFETIME: u64 = 3600;

    /// The prefix of the token in its digest.
    const DIGEST_DOMAIN: &'static [u8] = b"chio.governed-approval-token.v1\0";

    /// The digest by which receipts name this very token, signature included.
    ///
    /// # Errors
    /// When the token has no canonical form.
    pub fn artifact_digest(&self) -> Result<String, CanonicalError> {
        let token = canonical::to_vec(self)?;
        Ok(const_hex::encode(sha256_parts(&[Self::DIGEST_DOMAIN, &token])))
    }

    /// Checks that this token approves what `terms` describe. Single use is for the caller
    /// to enforce.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn check(&self, terms: &ApprovalTerms<'_>) -> Result<(), ApprovalError> {
        Validity { issued_at: self.issued_at, expires_at: self.expires_at }.check(terms.now)?;
        self.check_binding(terms)?;
        if self.decision == ApprovalDecision::Denied {
            return Err(ApprovalError::Denied);
        }
        // SECURITY: a vote is signed by a trusted approver like an approval.
        if self.threshold_proposal_hash.is_some() {
            return Err(ApprovalError::Vote);
        }
        if !terms.approvers.contains(&self.approver) {
            return Err(ApprovalError::Approver { found: self.approver.clone() });
        }
        self.check_signature()?;
        let lifetime = self.expires_at.saturating_sub(self.issued_at);
        if lifetime > Self::MAX_LIFETIME {
            return Err(ApprovalError::Lifetime { found: lifetime });
        }
        Ok(())
    }

    fn check_binding(&self, terms: &ApprovalTerms<'_>) -> Result<(), ApprovalError> {
        if self.request_id != terms.request_id {
            return Err(ApprovalError::Request {
                expected: terms.request_id.to_owned(),
                found: self.request_id.clone(),
            });
        }
        if self.governed_intent_hash != terms.intent_hash {
            return Err(ApprovalError::Intent {
                expected: terms.intent_hash.to_owned(),
                found: self.governed_intent_hash.clone(),
            });
        }
        if self.subject != *terms.subject {
            return Err(ApprovalError::Subject {
                expected: terms.subject.clone(),
                found: self.subject.clone(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governance::tests::{key, read_signed, text};

    const NOW: u64 = 1_700_000_100;

    fn approval() -> ApprovalToken {
        read_signed("approval", 4)
    }

    fn signed(change: impl FnOnce(&mut ApprovalToken)) -> ApprovalToken {
        let mut token = approval();
        change(&mut token);
        token.signed(&key(4)).unwrap()
    }

    fn check(token: &ApprovalToken, now: u64) -> Result<(), ApprovalError> {
        token.check(&ApprovalTerms {
            now,
            request_id: "req-1",
            intent_hash: &text("/intent_hash"),
            subject: key(2).public_key(),
            approvers: &[key(7).public_key().clone(), key(4).public_key().clone()],
        })
    }

    #[test]
    fn the_golden_approval_has_the_golden_bytes_and_digest() {
        let token = approval();
        let input = String::from_utf8(token.signing_input().unwrap()).unwrap();
        assert_eq!(input, text("/approval/signing_input_canonical"));
        assert_eq!(token.artifact_digest().unwrap(), text("/approval/artifact_digest"));
    }

    #[test]
    fn an_approval_holds_within_its_window() {
        let token = approval();
        assert_eq!(check(&token, token.issued_at), Ok(()));
        assert_eq!(check(&token, token.expires_at - 1), Ok(()));
        for now in [token.issued_at - 1, token.expires_at] {
            assert!(matches!(check(&token, now), Err(ApprovalError::Window(_))), "at {now}");
        }
    }

    #[test]
    fn an_approval_of_something_else_is_refused() {
        let (other, own) = ("other".to_owned(), text("/intent_hash"));
        let request = signed(|token| token.request_id.clone_from(&other));
        let expected =
            ApprovalError::Request { expected: "req-1".to_owned(), found: other.clone() };
        assert_eq!(check(&request, NOW), Err(expected));
        let intent = signed(|token| token.governed_intent_hash.clone_from(&other));
        assert_eq!(check(&intent, NOW), Err(ApprovalError::Intent { expected: own, found: other }));
        let subject = signed(|token| token.subject = key(3).public_key().clone());
        assert_eq!(
            check(&subject, NOW),
            Err(ApprovalError::Subject {
                expected: key(2).public_key().clone(),
                found: key(3).public_key().clone(),
            })
        );
    }

    #[test]
    fn a_refusal_or_a_vote_approves_nothing() {
        let denied = signed(|token| token.decision = ApprovalDecision::Denied);
        assert_eq!(check(&denied, NOW), Err(ApprovalError::Denied));
        let vote = signed(|token| token.threshold_proposal_hash = Some("00".to_owned()));
        assert_eq!(check(&vote, NOW), Err(ApprovalError::Vote));
    }

    #[test]
    fn only_a_trusted_approvers_own_signature_counts() {
        let mut stranger = approval();
        stranger.approver = key(2).public_key().clone();
        let stranger = stranger.signed(&key(2)).unwrap();
        let found = key(2).public_key().clone();
        assert_eq!(check(&stranger, NOW), Err(ApprovalError::Approver { found }));

        let mut forged = approval();
        forged.id.push('2');
        assert!(matches!(check(&forged, NOW), Err(ApprovalError::Artifact(_))));
    }

    #[test]
    fn an_approval_holds_for_an_hour_at_most() {
        let lasting = |seconds| signed(|token| token.expires_at = token.issued_at + seconds);
        assert_eq!(check(&lasting(3600), NOW), Ok(()));
        assert_eq!(
            check(&lasting(3601), NOW).unwrap_err().to_string(),
            "expected an approval for at most 3600 seconds, found 3601"
        );
    }

    #[test]
    fn the_first_failing_check_is_named() {
        let mut token = approval();
        token.request_id = "other".to_owned();
        token.decision = ApprovalDecision::Denied;
        token.approver = key(2).public_key().clone();
        assert!(matches!(check(&token, 0), Err(ApprovalError::Window(_))));
        assert!(matches!(check(&token, NOW), Err(ApprovalError::Request { .. })));
        token.request_id = "req-1".to_owned();
        assert_eq!(check(&token, NOW), Err(ApprovalError::Denied));
        token.decision = ApprovalDecision::Approved;
        assert!(matches!(check(&token, NOW), Err(ApprovalError::Approver { .. })));
    }
}
