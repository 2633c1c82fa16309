//! Collecting the chunks of a stream for a caller that receives one whole result.

use chio_kernel::Gone;
use parking_lot::Mutex;
use serde_json::Value;

/// The most bytes of JSON that are collected for one result.
const MAX_BYTES: usize = 8 << 20;

/// The chunks of one call.
#[derive(Debug, Default)]
pub struct ChunkCollector(Mutex<Collected>);

#[derive(Debug, Default)]
struct Collected {
    chunks: Vec<Value>,
    bytes: usize,
}

impl ChunkCollector {
    /// Adds a chunk.
    ///
    /// # Errors
    /// When the chunks together are too large for one result.
    pub fn push(&self, chunk: Value) -> Result<(), Gone> {
        let size = chunk.to_string().len();
        self.push_sized(chunk, size)
    }

    /// Adds a chunk that counts this many bytes.
    pub(crate) fn push_sized(&self, chunk: Value, size: usize) -> Result<(), Gone> {
        let mut collected = self.0.lock();
        collected.bytes = collected.bytes.saturating_add(size);
        if collected.bytes > MAX_BYTES {
            return Err(Gone);
        }
        collected.chunks.push(chunk);
        Ok(())
    }

    /// Reads the chunks that were added.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&[Value]) -> T) -> T {
        read(&self.0.lock().chunks)
    }

    /// Takes the chunks that were added.
    pub fn take(&self) -> Vec<Value> {
        let mut collected = self.0.lock();
        std::mem::take(&mut collected.chunks)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn chunks_are_collected_within_the_limit() {
        let chunks = ChunkCollector::default();
        assert!(chunks.push(json!("a")).is_ok());
        assert!(chunks.push(json!("x".repeat(MAX_BYTES - 5))).is_ok());
        assert!(chunks.push(json!("b")).is_err());
        assert_eq!(chunks.take().len(), 2);
        assert!(chunks.take().is_empty());
    }
}
