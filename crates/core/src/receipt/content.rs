//! The hash of what a call returned.

use serde::Serialize;

use crate::canonical::{self, CanonicalError};
use crate::hash::sha256_hex;

/// The content hash of a call that returned nothing: SHA-256 of `null`.
pub const NO_OUTPUT_HASH: &str = "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b";

/// Builds a content hash: of one value, of nothing, or of a stream as its chunks pass.
#[derive(Debug, Clone, Default)]
pub struct ContentHash {
    chunks: Vec<String>,
    bytes: u64,
}

impl ContentHash {
    /// The hash of one value.
    ///
    /// # Errors
    /// When the value has no canonical form.
    pub fn of_value<T: Serialize + ?Sized>(value: &T) -> Result<String, CanonicalError> {
        canonical::hash(value)
    }

    /// A stream without chunks so far.
    pub fn stream() -> Self {
        Self::default()
    }

    /// Adds a chunk and returns its own hash.
    ///
    /// # Errors
    /// When the chunk has no canonical form.
    pub fn push<T: Serialize + ?Sized>(&mut self, chunk: &T) -> Result<&str, CanonicalError> {
        let bytes = canonical::to_vec(chunk)?;
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.chunks.push(sha256_hex(&bytes));
        Ok(self.chunks.last().map_or("", String::as_str))
    }

    /// The hashes of the chunks, in order.
    pub fn chunk_hashes(&self) -> &[String] {
        &self.chunks
    }

    /// How many canonical bytes the chunks have together.
    pub const fn total_bytes(&self) -> u64 {
        self.bytes
    }

    /// The hash of the stream: of its chunks' hashes, written one after another.
    pub fn finish(&self) -> String {
        sha256_hex(self.chunks.concat().as_bytes())
    }
}
