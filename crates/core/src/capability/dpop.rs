//! Proofs of possession: the subject signs each call, so a stolen token alone is useless.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CapabilityToken;
use crate::canonical::{self, CanonicalError};
use crate::crypto::{Keypair, PublicKey, Signature, SignatureError};
use crate::signed::{ArtifactError, Signed, signed_by};

/// The schema of every proof.
pub const DPOP_SCHEMA: &str = "chio.dpop_proof.v1";

/// How far ahead of the verifier's clock a proof may be, in seconds.
pub const DPOP_SKEW: u64 = 30;
/// How long a proof may be used, in seconds. Its nonce is remembered at least as long.
pub const DPOP_LIFETIME: u64 = 300;

/// A signed proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DpopProof {
    /// What is proved.
    pub body: DpopBody,
    /// The subject's signature over the body.
    pub signature: Signature,
}

signed_by!(DpopProof { body }, body.agent_key);

/// The call that a proof is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DpopBody {
    /// [`DPOP_SCHEMA`].
    pub schema: String,
    /// The token used.
    pub capability_id: String,
    /// The server called.
    pub tool_server: String,
    /// The tool called.
    pub tool_name: String,
    /// SHA-256 of the canonical arguments.
    pub action_hash: String,
    /// Unique for this token: a proof is accepted once.
    pub nonce: String,
    /// When it was signed, in Unix seconds.
    pub issued_at: u64,
    /// The subject's key.
    pub agent_key: PublicKey,
}

/// What a proof must be bound to.
#[derive(Debug, Clone, Copy)]
pub struct DpopTarget<'a> {
    /// The token that is presented.
    pub token: &'a CapabilityToken,
    /// The server called.
    pub tool_server: &'a str,
    /// The tool called.
    pub tool_name: &'a str,
    /// The call's arguments.
    pub arguments: &'a Value,
}

/// Why a proof was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DpopError {
    /// Another kind of object.
    #[error("expected schema `{DPOP_SCHEMA}`, found `{0}`")]
    Schema(String),
    /// Not signed by the token's subject.
    #[error("expected the proof from the token's subject, found another key")]
    NotSubject,
    /// Made for another call.
    #[error("expected a proof for this call, found another `{0}`")]
    NotBound(&'static str),
    /// Issued ahead of the verifier's clock.
    #[error("expected a proof issued by {latest}, found {found}")]
    TooEarly {
        /// The latest time accepted.
        latest: u64,
        /// The proof's time.
        found: u64,
    },
    /// Issued too long ago.
    #[error("expected a proof issued at or after {earliest}, found {found}")]
    TooLate {
        /// The earliest time accepted.
        earliest: u64,
        /// The proof's time.
        found: u64,
    },
    /// The arguments have no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The signature was not accepted.
    #[error(transparent)]
    Signature(#[from] SignatureError),
}

impl DpopProof {
    /// Signs a proof for one call with the subject's key.
    ///
    /// # Errors
    /// When `key` is not the token's subject, or the arguments have no canonical form.
    pub fn new(
        target: &DpopTarget<'_>,
        nonce: impl Into<String>,
        issued_at: u64,
        key: &Keypair,
    ) -> Result<Self, ArtifactError> {
        crate::signed::require_key(&target.token.subject, key)?;
        let body = DpopBody {
            schema: DPOP_SCHEMA.to_owned(),
            capability_id: target.token.id.clone(),
            tool_server: target.tool_server.to_owned(),
            tool_name: target.tool_name.to_owned(),
            action_hash: canonical::hash(target.arguments)?,
            nonce: nonce.into(),
            issued_at,
            agent_key: key.public_key().clone(),
        };
        Self { body, signature: Signature::blank() }.signed(key)
    }

    /// Checks that this proof was made for this call, now. Single use of its nonce
    /// is for the caller to enforce.
    ///
    /// # Errors
    /// With the first check that does not hold.
    pub fn verify(&self, target: &DpopTarget<'_>, now: u64) -> Result<(), DpopError> {
        let body = &self.body;
        if body.schema != DPOP_SCHEMA {
            return Err(DpopError::Schema(body.schema.clone()));
        }
        if body.agent_key != target.token.subject {
            return Err(DpopError::NotSubject);
        }
        let bindings = [
            ("capability_id", body.capability_id == target.token.id),
            ("tool_server", body.tool_server == target.tool_server),
            ("tool_name", body.tool_name == target.tool_name),
            ("action_hash", body.action_hash == canonical::hash(target.arguments)?),
        ];
        if let Some((name, _)) = bindings.iter().find(|(_, bound)| !bound) {
            return Err(DpopError::NotBound(name));
        }
        let latest = now.saturating_add(DPOP_SKEW);
        if body.issued_at > latest {
            return Err(DpopError::TooEarly { latest, found: body.issued_at });
        }
        if body.issued_at.saturating_add(DPOP_LIFETIME) < now {
            let earliest = now.saturating_sub(DPOP_LIFETIME);
            return Err(DpopError::TooLate { earliest, found: body.issued_at });
        }
        Ok(body.agent_key.check(&self.signing_input()?, &self.signature)?)
    }
}
