//! Checking a token: each rule on its own, or all in order.

use serde::Serialize;

use super::delegation::WHOLE_SHARE;
use super::profile::AggregateScope;
use super::{CAPABILITY_SCHEMA, CapabilityToken};
use crate::canonical::{self, CanonicalError};
use crate::crypto::{Algorithm, PublicKey, Signature, SignatureError};
use crate::registry::ErrorCode;
use crate::signed::{ArtifactError, Signed, contradiction};
use crate::window::WindowError;

/// Why a token is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The issuer is not trusted.
    #[error("expected a trusted issuer, found `{0}`")]
    UntrustedIssuer(PublicKey),
    /// Another kind of object.
    #[error("expected schema `{CAPABILITY_SCHEMA}`, found `{0}`")]
    Schema(String),
    /// A rule on its members is broken.
    #[error("{0}")]
    Structure(&'static str),
    /// The unsigned hint names another algorithm than the signature's.
    #[error("the algorithm member says {}, the signature is {}", hint.name(), signature.name())]
    AlgorithmHint {
        /// The hint.
        hint: Algorithm,
        /// The signature's algorithm.
        signature: Algorithm,
    },
    /// The issuer has not signed this.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// Before or after its time.
    #[error("the token does not hold now: {0}")]
    Window(#[from] WindowError),
    /// A link is not signed by its delegator.
    #[error("the signature of link {index} of the delegation chain does not hold: {error}")]
    LinkSignature {
        /// The index of the link, from 0.
        index: usize,
        /// What is wrong.
        error: ArtifactError,
    },
    /// Two links, or the last link and the subject, do not join.
    #[error("expected link {index} of the delegation chain to lead to the next, it does not")]
    BrokenChain {
        /// The index of the link, from 0.
        index: usize,
    },
    /// A link is older than the one before it.
    #[error("link {index} of the delegation chain is older than the one before it")]
    ChainOrder {
        /// The index of the link, from 0.
        index: usize,
    },
    /// Delegated too many times.
    #[error("expected at most {most} delegations, found {found}")]
    ChainDepth {
        /// The most allowed.
        most: usize,
        /// The number of delegations found.
        found: usize,
    },
    /// The token has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}

impl TokenError {
    /// The registry code of a call that is denied for this.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Window(_) => ErrorCode::CapabilityExpired,
            _ => ErrorCode::CapabilityDenied,
        }
    }
}

/// Which bytes a token's signature is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignatureForm {
    /// With `schema`, as tokens are signed now.
    Current,
    /// Without `schema`, as the oldest tokens were signed.
    Legacy,
}

/// What a verifier trusts and requires.
#[derive(Debug, Clone, Copy)]
pub struct VerifyOptions<'a> {
    /// Now, in Unix seconds.
    pub now: u64,
    /// The keys that may issue tokens.
    pub trusted_issuers: &'a [PublicKey],
    /// The most delegations of a token; none means no limit.
    pub max_chain_depth: Option<usize>,
}

/// Every check on a token, separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenReport {
    /// Issued by a trusted key.
    pub issuer: Result<(), TokenError>,
    /// Well-formed, and signed by its issuer.
    pub signature: Result<SignatureForm, TokenError>,
    /// Within its window.
    pub time: Result<(), TokenError>,
    /// Every link signed and joined to the next, the last one to the subject.
    pub chain: Result<(), TokenError>,
}

impl TokenReport {
    /// The checks that failed, in the order of verification.
    pub fn failures(&self) -> impl Iterator<Item = &TokenError> {
        let signature = self.signature.as_ref().err();
        [self.issuer.as_ref().err(), signature, self.time.as_ref().err(), self.chain.as_ref().err()]
            .into_iter()
            .flatten()
    }

    /// Whether every check holds.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.failures().next().is_none()
    }
}

impl CapabilityToken {
    /// Runs every check and reports each.
    #[must_use]
    pub fn examine(&self, options: &VerifyOptions<'_>) -> TokenReport {
        TokenReport {
            issuer: self.check_issuer(options.trusted_issuers),
            signature: self.check_token_signature(),
            time: self.validity().check(options.now).map_err(TokenError::from),
            chain: self.check_chain(options.max_chain_depth),
        }
    }

    /// Runs the checks in order and stops at the first that fails, cheap ones first where the
    /// order allows.
    ///
    /// # Errors
    /// With the first check that fails.
    pub fn verify(&self, options: &VerifyOptions<'_>) -> Result<SignatureForm, TokenError> {
        self.check_issuer(options.trusted_issuers)?;
        let form = self.check_token_signature()?;
        self.validity().check(options.now)?;
        self.check_chain(options.max_chain_depth)?;
        Ok(form)
    }

    /// Checks that the issuer is one of these.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_issuer(&self, trusted: &[PublicKey]) -> Result<(), TokenError> {
        if trusted.contains(&self.issuer) {
            return Ok(());
        }
        Err(TokenError::UntrustedIssuer(self.issuer.clone()))
    }

    /// Checks form and signature, and says which form was signed.
    ///
    /// # Errors
    /// When the token breaks a rule or the issuer has not signed it.
    pub fn check_token_signature(&self) -> Result<SignatureForm, TokenError> {
        self.check_members()?;
        let form = self.check_issuer_signature()?;
        // SECURITY: the witness costs time quadratic in its size, so only an issuer may ask for it.
        self.check_witness()?;
        Ok(form)
    }

    fn check_issuer_signature(&self) -> Result<SignatureForm, TokenError> {
        let input = self.signing_input()?;
        let Err(error) = self.issuer.check(&input, &self.signature) else {
            return Ok(SignatureForm::Current);
        };
        if error != SignatureError::Invalid || !self.may_be_legacy() {
            return Err(error.into());
        }
        let legacy = canonical::to_vec_without(self, &["algorithm", "schema", "signature"])?;
        self.issuer.check(&legacy, &self.signature)?;
        Ok(SignatureForm::Legacy)
    }

    /// Checks that every link is signed and leads to the next, and the last one to the subject.
    ///
    /// # Errors
    /// With the first link that does not.
    pub fn check_chain(&self, max_depth: Option<usize>) -> Result<(), TokenError> {
        let links = &self.delegation_chain;
        if let Some(most) = max_depth.filter(|most| links.len() > *most) {
            return Err(TokenError::ChainDepth { most, found: links.len() });
        }
        for (index, link) in links.iter().enumerate() {
            link.check_signature().map_err(|error| TokenError::LinkSignature { index, error })?;
            let next = links.get(index + 1);
            if link.delegatee != *next.map_or(&self.subject, |next| &next.delegator) {
                return Err(TokenError::BrokenChain { index });
            }
            if next.is_some_and(|next| next.timestamp < link.timestamp) {
                return Err(TokenError::ChainOrder { index: index + 1 });
            }
        }
        Ok(())
    }

    /// The rules on members, which are checked before the signature.
    fn check_members(&self) -> Result<(), TokenError> {
        if self.schema != CAPABILITY_SCHEMA {
            return Err(TokenError::Schema(self.schema.clone()));
        }
        if let Some((hint, signature)) = contradiction(self.algorithm, &self.signature) {
            return Err(TokenError::AlgorithmHint { hint, signature });
        }
        if !self.caveats.is_empty() {
            return Err(TokenError::Structure("caveats make a token invalid, found one"));
        }
        if self.budget_share_bps.is_some_and(|share| share > WHOLE_SHARE) {
            return Err(TokenError::Structure("expected a budget share of at most 10000"));
        }
        self.check_aggregate_budget()
    }

    fn check_witness(&self) -> Result<(), TokenError> {
        self.attenuation_proof.as_ref().map_or(Ok(()), |proof| proof.check(&self.scope))
    }

    fn check_aggregate_budget(&self) -> Result<(), TokenError> {
        let Some(budget) = &self.aggregate_invocation_budget else { return Ok(()) };
        let sound = match budget.scope {
            AggregateScope::Capability => {
                budget.root_binding.is_none() && !self.scope.has_delegate()
            }
            AggregateScope::DelegationFamily => budget.root_binding.is_some(),
        };
        if sound {
            return Ok(());
        }
        Err(TokenError::Structure("the aggregate budget does not fit its scope"))
    }

    /// Whether the oldest form of signature is accepted: only on tokens without any later feature.
    fn may_be_legacy(&self) -> bool {
        self.aggregate_invocation_budget.is_none()
            && !self.is_attenuated_profile()
            && !self.has_cumulative_approval()
    }
}

impl Signed for CapabilityToken {
    fn signer(&self) -> &PublicKey {
        &self.issuer
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn set_signature(&mut self, signature: Signature) {
        self.signature = signature;
    }

    fn check_structure(&self) -> Result<(), ArtifactError> {
        self.check_members()
            .and_then(|()| self.check_witness())
            .map_err(|error| ArtifactError::Malformed(error.to_string()))
    }

    fn check_signable(&self) -> Result<(), ArtifactError> {
        self.check_structure()?;
        if self.expires_at <= self.issued_at {
            let text = "expected a token that ends after it begins, found an empty window";
            return Err(ArtifactError::Malformed(text.to_owned()));
        }
        // Rare profiles are read, never made.
        let profile = self.unsupported_profile();
        profile.map_or(Ok(()), |profile| Err(ArtifactError::Malformed(profile.to_owned())))
    }

    fn check_signature(&self) -> Result<(), ArtifactError> {
        match self.check_token_signature() {
            Ok(_) => Ok(()),
            Err(TokenError::Signature(error)) => Err(error.into()),
            Err(error) => Err(ArtifactError::Malformed(error.to_string())),
        }
    }
}
