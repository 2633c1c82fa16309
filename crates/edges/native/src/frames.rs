//! Reading frames from a byte stream.

use std::io;

use chio_core::frame::{Decoder, FrameError, PREFIX_LEN};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most bytes that are read at once.
const READ_SIZE: usize = 64 * 1024;

/// From this size on, the memory of a payload is given back when nothing follows it.
const LARGE_PAYLOAD: usize = 1024 * 1024;

/// Payloads from a byte stream.
pub(crate) struct FrameReader<R> {
    reader: R,
    decoder: Decoder,
    chunk: Box<[u8]>,
    /// Bytes that have arrived and were not given out.
    waiting: usize,
    has_been_large: bool,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            decoder: Decoder::default(),
            chunk: vec![0; READ_SIZE].into_boxed_slice(),
            waiting: 0,
            has_been_large: false,
        }
    }

    /// Waits for more bytes; false at their end. Nothing is lost when the future is dropped.
    pub(crate) async fn fill(&mut self) -> io::Result<bool> {
        let count = self.reader.read(&mut self.chunk).await?;
        let arrived = self.chunk.get(..count).unwrap_or_default();
        if self.has_been_large && self.waiting == 0 {
            self.decoder = Decoder::default();
            self.has_been_large = false;
        }
        self.decoder.feed(arrived);
        self.waiting += count;
        Ok(count > 0)
    }

    /// The next whole payload, if it has arrived.
    pub(crate) fn next_payload(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let payload = self.decoder.next_payload()?;
        if let Some(payload) = payload {
            self.waiting = self.waiting.saturating_sub(PREFIX_LEN + payload.len());
            self.has_been_large |= payload.len() >= LARGE_PAYLOAD;
        }
        Ok(payload)
    }

    /// How many bytes have arrived and were not given out.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Checks that the stream may end here.
    pub(crate) fn finish(&self) -> Result<(), FrameError> {
        self.decoder.finish()
    }
}
