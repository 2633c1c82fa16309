//! SHA-256 and the two text forms of a digest: bare hex, and `0x` hex for Merkle hashes.

use std::fmt;

use aws_lc_rs::digest::{self, SHA256};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Bytes in a SHA-256 digest.
pub const DIGEST_LEN: usize = 32;

/// SHA-256 over the concatenation of `parts`.
pub fn sha256_parts(parts: &[&[u8]]) -> [u8; DIGEST_LEN] {
    let mut context = digest::Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut bytes = [0; DIGEST_LEN];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

/// SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; DIGEST_LEN] {
    let mut out = [0; DIGEST_LEN];
    out.copy_from_slice(digest::digest(&SHA256, bytes).as_ref());
    out
}

/// SHA-256 of `bytes` as 64 lowercase hex digits: the form of ids, scope and content hashes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    const_hex::encode(sha256(bytes))
}

/// A Merkle hash. Its text form is the only one that carries `0x`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; DIGEST_LEN]);

/// Why a text is not a Merkle hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected 64 hex digits, with or without `0x`, found {found} characters")]
pub struct HashError {
    found: usize,
}

impl Hash {
    /// A hash with these bytes.
    pub const fn new(bytes: [u8; DIGEST_LEN]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; DIGEST_LEN] {
        &self.0
    }

    /// Reads 64 hex digits of either case, with or without `0x`.
    ///
    /// # Errors
    /// When the text is anything else.
    pub fn from_hex(text: &str) -> Result<Self, HashError> {
        let mut bytes = [0; DIGEST_LEN];
        const_hex::decode_to_slice(text, &mut bytes)
            .map_err(|_| HashError { found: text.chars().count() })?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&const_hex::encode_prefixed(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = crate::text::Text::deserialize(deserializer)?;
        Self::from_hex(&text.0).map_err(de::Error::custom)
    }
}
