//! Reading frames from a byte stream, within the memory of the process.

use std::borrow::Cow;

use chio_core::frame::{Decoder, FrameError, PREFIX_LEN};
use chio_net::memory::{HeldMemory, LARGE};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::error::NativeError;

/// The most bytes that are read at once, and that a connection keeps uncounted.
const READ_SIZE: usize = 64 * 1024;

/// Payloads from a byte stream.
pub(crate) struct FrameReader<R> {
    reader: R,
    decoder: Decoder,
    chunk: Box<[u8]>,
    /// Bytes that have arrived and were not given out.
    waiting: usize,
    held: HeldMemory,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            decoder: Decoder::default(),
            chunk: vec![0; READ_SIZE].into_boxed_slice(),
            waiting: 0,
            held: HeldMemory::of_process(READ_SIZE),
        }
    }

    /// Waits for more bytes; false at their end. Nothing is lost when the future is dropped: there is
    /// memory for the bytes before they are read.
    pub(crate) async fn fill(&mut self) -> Result<bool, NativeError> {
        if self.held.room() == 0 {
            self.held.reserve(self.waiting + READ_SIZE).await?;
        }
        let most = self.held.room().min(READ_SIZE);
        let chunk = self.chunk.get_mut(..most).unwrap_or_default();
        let count = self.held.unless_cut_off(self.reader.read(chunk)).await??;
        self.held.grow(count).await?;
        self.decoder.feed(chunk.get(..count).unwrap_or_default());
        self.waiting += count;
        Ok(count > 0)
    }

    /// The next whole payload, if it has arrived. The memory of a large one is the caller's.
    pub(crate) fn next_payload(&mut self) -> Result<Option<Cow<'_, [u8]>>, FrameError> {
        let is_large = self.decoder.announced()?.is_some_and(|length| length >= LARGE);
        let payload = if is_large {
            self.decoder.take_payload()?.map(Cow::Owned)
        } else {
            self.decoder.next_payload()?.map(Cow::Borrowed)
        };
        if let Some(payload) = &payload {
            let frame = PREFIX_LEN + payload.len();
            self.waiting = self.waiting.saturating_sub(frame);
            self.held.shrink(frame);
            if self.waiting == 0 {
                self.held.clear();
            }
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
