//! What signed artifacts have in common: a signer, a signature, and the bytes between them.

use serde::Serialize;

use crate::canonical::{self, CanonicalError};
use crate::crypto::{Algorithm, Keypair, PublicKey, Signature, SignatureError};

/// Why an artifact could not be signed or was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The artifact names another key than the one that is to sign it.
    #[error("expected to sign with the key that the artifact names, `{named}`, found `{given}`")]
    WrongKey {
        /// The key in the artifact.
        named: PublicKey,
        /// The key at hand.
        given: PublicKey,
    },
    /// The content breaks a rule of its kind.
    #[error("{0}")]
    Malformed(String),
    /// The content has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The signature was not accepted.
    #[error(transparent)]
    Signature(#[from] SignatureError),
}

/// Shorthand for [`ArtifactError::Malformed`].
pub(crate) fn malformed(message: impl Into<String>) -> ArtifactError {
    ArtifactError::Malformed(message.into())
}

/// Refuses an artifact of another schema.
pub(crate) fn require_schema(expected: &str, found: &str) -> Result<(), ArtifactError> {
    if found == expected {
        return Ok(());
    }
    Err(malformed(format!("expected schema `{expected}`, found `{found}`")))
}

/// An artifact that carries the key that signed it and its signature.
///
/// Make one by filling in its members with [`Signature::blank`] for the signature, then call
/// [`Signed::signed`].
pub trait Signed: Serialize + Sized {
    /// Members that are not part of what is signed.
    const UNSIGNED: &'static [&'static str] = &["algorithm", "signature"];

    /// The key that signs, as the artifact names it.
    fn signer(&self) -> &PublicKey;

    /// The signature.
    fn signature(&self) -> &Signature;

    /// Sets the signature.
    fn set_signature(&mut self, signature: Signature);

    /// The rules of this kind that do not depend on the signer.
    ///
    /// # Errors
    /// When one is broken.
    fn check_structure(&self) -> Result<(), ArtifactError> {
        Ok(())
    }

    /// The rules that hold for what we sign ourselves; never fewer than for what we accept.
    ///
    /// # Errors
    /// When one is broken.
    fn check_signable(&self) -> Result<(), ArtifactError> {
        self.check_structure()
    }

    /// The bytes that are signed.
    ///
    /// # Errors
    /// When the content has no canonical form.
    fn signing_input(&self) -> Result<Vec<u8>, CanonicalError> {
        canonical::to_vec_without(self, Self::UNSIGNED)
    }

    /// Signs the artifact with `key`.
    ///
    /// # Errors
    /// When the artifact names another key, or breaks a rule of its kind.
    fn signed(mut self, key: &Keypair) -> Result<Self, ArtifactError> {
        require_key(self.signer(), key)?;
        self.check_signable()?;
        let signature = key.sign(&self.signing_input()?);
        self.set_signature(signature);
        Ok(self)
    }

    /// Checks the rules of this kind, and that the key it names has signed it. Whether that key
    /// is to be trusted is another question.
    ///
    /// # Errors
    /// When a rule is broken or the signature does not match.
    fn check_signature(&self) -> Result<(), ArtifactError> {
        self.check_structure()?;
        Ok(self.signer().check(&self.signing_input()?, self.signature())?)
    }
}

/// Refuses to sign for another key.
pub(crate) fn require_key(named: &PublicKey, key: &Keypair) -> Result<(), ArtifactError> {
    if named == key.public_key() {
        return Ok(());
    }
    Err(ArtifactError::WrongKey { named: named.clone(), given: key.public_key().clone() })
}

/// The unsigned `algorithm` hint and the signature's own algorithm, where they contradict.
pub(crate) fn contradiction(
    hint: Option<Algorithm>,
    signature: &Signature,
) -> Option<(Algorithm, Algorithm)> {
    let found = signature.algorithm();
    hint.filter(|hint| *hint != found).map(|hint| (hint, found))
}

/// Refuses an `algorithm` hint that contradicts the signature.
pub(crate) fn require_hint(
    hint: Option<Algorithm>,
    signature: &Signature,
) -> Result<(), ArtifactError> {
    match contradiction(hint, signature) {
        None => Ok(()),
        Some((hint, found)) => {
            let (hint, found) = (hint.name(), found.name());
            Err(malformed(format!("the algorithm member says {hint}, the signature is {found}")))
        }
    }
}

/// Implements [`Signed`] for a type with a `signature` member, signed by the key in the given
/// member. `Type { member }` is signed over that member alone. The last argument checks structure.
macro_rules! signed_by {
    ($type:ident $({ $content:ident })?, $($signer:ident).+ $(, $check:expr)?) => {
        impl $crate::signed::Signed for $type {
            fn signer(&self) -> &$crate::crypto::PublicKey {
                &self.$($signer).+
            }

            fn signature(&self) -> &$crate::crypto::Signature {
                &self.signature
            }

            fn set_signature(&mut self, signature: $crate::crypto::Signature) {
                self.signature = signature;
            }

            $(fn check_structure(&self) -> Result<(), $crate::signed::ArtifactError> {
                let check: fn(&Self) -> Result<(), $crate::signed::ArtifactError> = $check;
                check(self)
            })?

            $(fn signing_input(&self) -> Result<Vec<u8>, $crate::canonical::CanonicalError> {
                $crate::canonical::to_vec(&self.$content)
            })?
        }
    };
}
pub(crate) use signed_by;
