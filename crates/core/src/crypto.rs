//! Keys and signatures: Ed25519, and the text forms of algorithms that we know but do not verify.
//!
//! A [`PublicKey`] or [`Signature`] of another algorithm parses, prints and compares like any
//! other; checking one returns [`SignatureError::Unsupported`].

mod encoding;

use std::fmt;

use aws_lc_rs::signature::{self, ED25519, Ed25519KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

pub use encoding::{EncodingError, PublicKey, Signature};

/// Bytes in an Ed25519 seed.
pub const SEED_LEN: usize = 32;
/// Bytes in an Ed25519 public key.
pub const PUBLIC_KEY_LEN: usize = 32;
/// Bytes in an Ed25519 signature.
pub const SIGNATURE_LEN: usize = 64;

/// A signature algorithm, by the name that `algorithm` members carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Algorithm {
    /// The one that we sign and verify with.
    Ed25519,
    /// ECDSA on P-256.
    P256,
    /// ECDSA on P-384.
    P384,
    /// A classical and a post-quantum signature together.
    Hybrid,
}

impl Algorithm {
    /// The name in `algorithm` members.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether an `algorithm` member is left out: it is when absent or Ed25519.
    pub(crate) fn is_default(hint: &Option<Self>) -> bool {
        matches!(hint, None | Some(Self::Ed25519))
    }
}

/// Why a signature was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The signature is not this key's over this message.
    #[error("the signature does not match the key and the signed content")]
    Invalid,
    /// Key and signature are of two algorithms.
    #[error("the key is {key:?} but the signature is {signature:?}")]
    Mismatch {
        /// The key's algorithm.
        key: Algorithm,
        /// The signature's algorithm.
        signature: Algorithm,
    },
    /// The algorithm is known by name only.
    #[error("signatures of algorithm {} are unsupported, expected ed25519", .0.name())]
    Unsupported(Algorithm),
}

impl PublicKey {
    /// Checks that `signature` is this key's over `message`.
    ///
    /// # Errors
    /// When it is not, or the algorithm is unsupported; see [`SignatureError`].
    pub fn check(&self, message: &[u8], signature: &Signature) -> Result<(), SignatureError> {
        let (key, given) = (self.algorithm(), signature.algorithm());
        if key != given {
            return Err(SignatureError::Mismatch { key, signature: given });
        }
        let (Some(key), Some(signature)) = (self.as_ed25519(), signature.as_ed25519()) else {
            return Err(SignatureError::Unsupported(key));
        };
        UnparsedPublicKey::new(&ED25519, key)
            .verify(message, signature)
            .map_err(|_| SignatureError::Invalid)
    }
}

/// Random bytes from the operating system.
///
/// # Panics
/// When the operating system has no randomness to give: nothing made then would be safe.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(clippy::expect_used, reason = "without randomness there is no safe way on")]
    aws_lc_rs::rand::fill(&mut bytes).expect("the operating system gives randomness");
    bytes
}

/// An Ed25519 key pair. Its secret is wiped when dropped and never printed.
pub struct Keypair {
    signer: Ed25519KeyPair,
    seed: Zeroizing<[u8; SEED_LEN]>,
    public: PublicKey,
}

impl Keypair {
    /// A new key from the operating system's randomness.
    ///
    /// # Panics
    /// When the operating system has no randomness to give: no key made then would be safe.
    pub fn generate() -> Self {
        let mut seed = Zeroizing::new([0; SEED_LEN]);
        #[expect(clippy::expect_used, reason = "without randomness there is no safe way on")]
        aws_lc_rs::rand::fill(seed.as_mut_slice()).expect("the operating system gives randomness");
        Self::from_seed(&seed)
    }

    /// The key of this seed.
    ///
    /// # Panics
    /// Never: every 32 bytes are a seed.
    pub fn from_seed(seed: &[u8; SEED_LEN]) -> Self {
        #[expect(clippy::expect_used, reason = "the length, the only thing checked, is the type's")]
        let signer = Ed25519KeyPair::from_seed_unchecked(seed).expect("32 bytes are a seed");
        let mut public = [0; PUBLIC_KEY_LEN];
        public.copy_from_slice(signature::KeyPair::public_key(&signer).as_ref());
        Self { signer, seed: Zeroizing::new(*seed), public: PublicKey::from_ed25519(public) }
    }

    /// The key of a seed written as 64 hex digits, as key files hold it.
    ///
    /// # Errors
    /// When the text is not 64 hex digits, with or without `0x`. The text itself is not repeated.
    pub fn from_seed_hex(text: &str) -> Result<Self, EncodingError> {
        let mut seed = Zeroizing::new([0; SEED_LEN]);
        const_hex::decode_to_slice(text, seed.as_mut_slice())
            .map_err(|_| EncodingError::new("a seed of 64 hex digits", text))?;
        Ok(Self::from_seed(&seed))
    }

    /// The seed as 64 hex digits. Its holder can sign as this key.
    pub fn seed_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(const_hex::encode(self.seed.as_slice()))
    }

    /// The public half.
    pub const fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Signs `message`.
    pub fn sign(&self, message: &[u8]) -> Signature {
        let mut bytes = [0; SIGNATURE_LEN];
        bytes.copy_from_slice(self.signer.sign(message).as_ref());
        Signature::from_ed25519(bytes)
    }
}

impl fmt::Debug for Keypair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keypair").field("public", &self.public).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
