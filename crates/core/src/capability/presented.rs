//! A token on its way with a call: shared, and hashed at most once.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::CapabilityToken;
use crate::canonical::{self, CanonicalError};

/// A token that came with a call. Calls of one token share it.
#[derive(Debug, Clone)]
pub struct PresentedToken(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    token: CapabilityToken,
    hash: OnceLock<String>,
}

impl PresentedToken {
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
        Self(Arc::new(Inner { token, hash: OnceLock::new() }))
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
