//! A token on its way with a call: shared, and hashed at most once.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::{CapabilityToken, ChioScope, Validity};
use crate::canonical::{self, CanonicalError};
use crate::crypto::{PUBLIC_KEY_LEN, PublicKey};

/// A token that came with a call. Calls of one token share it.
#[derive(Debug, Clone)]
pub struct PresentedToken(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    token: CapabilityToken,
    /// Why what came could not be read as a token.
    problem: Option<String>,
    hash: OnceLock<String>,
}

impl PresentedToken {
    /// What stands for a token that came and could not be read, under the id that it claims. It
    /// grants nothing, and a kernel denies it for its [`Self::problem`], before it looks at anything
    /// else of it.
    pub fn unreadable(claimed_id: &str, problem: String) -> Self {
        let nobody = PublicKey::from_ed25519([0; PUBLIC_KEY_LEN]);
        let never = Validity { issued_at: 0, expires_at: 0 };
        let scope = ChioScope::default();
        let token = CapabilityToken::draft(claimed_id, nobody.clone(), nobody, scope, never);
        Self(Arc::new(Inner { token, problem: Some(problem), hash: OnceLock::new() }))
    }

    /// Why what came could not be read; none for a token.
    pub fn problem(&self) -> Option<&str> {
        self.0.problem.as_deref()
    }

    /// SHA-256 of the whole signed token, as capability references carry it.
    ///
    /// # Errors
    /// When the token has no canonical form.
    pub fn hash(&self) -> Result<&str, CanonicalError> {
        if let Some(hash) = self.0.hash.get() {
            return Ok(hash);
        }
        let hash = canonical::hash(&self.0.token)?;
        Ok(self.0.hash.get_or_init(|| hash))
    }
}

impl From<CapabilityToken> for PresentedToken {
    fn from(token: CapabilityToken) -> Self {
        Self(Arc::new(Inner { token, problem: None, hash: OnceLock::new() }))
    }
}

impl Deref for PresentedToken {
    type Target = CapabilityToken;

    fn deref(&self) -> &CapabilityToken {
        &self.0.token
    }
}

impl PartialEq for PresentedToken {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.token == other.0.token
    }
}

impl Eq for PresentedToken {}
