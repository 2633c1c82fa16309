//! Frames of the native transport: a length of four bytes, then that many bytes of canonical JSON.
//!
//! A [`Decoder`] is fed bytes as they arrive and gives payloads back; it does no I/O.

use serde::Serialize;

use crate::canonical::{self, CanonicalError};

/// The largest payload, in bytes.
pub const MAX_PAYLOAD: usize = 16 * 1024 * 1024;
/// Bytes of the length prefix.
pub const PREFIX_LEN: usize = 4;

/// Why a connection cannot continue. The next frame cannot be found after any of these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A length beyond [`MAX_PAYLOAD`].
    #[error("message_too_large: expected at most {MAX_PAYLOAD} bytes of payload, found {0}")]
    TooLarge(u64),
    /// The bytes ended inside a frame.
    #[error("connection_closed: expected {expected} more bytes of a frame, found the end")]
    Closed {
        /// The number of missing bytes.
        expected: usize,
    },
    /// The message has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}

/// Writes one message as a frame.
///
/// # Errors
/// When the message has no canonical form or is too large.
pub fn encode<T: Serialize + ?Sized>(message: &T) -> Result<Vec<u8>, FrameError> {
    encode_payload(&canonical::to_vec(message)?)
}

/// Puts the length before a payload.
///
/// # Errors
/// When the payload is too large.
pub fn encode_payload(payload: &[u8]) -> Result<Vec<u8>, FrameError> {
    let prefix = match u32::try_from(payload.len()) {
        Ok(length) if payload.len() <= MAX_PAYLOAD => length.to_be_bytes(),
        _ => return Err(FrameError::TooLarge(u64::try_from(payload.len()).unwrap_or(u64::MAX))),
    };
    Ok([&prefix, payload].concat())
}

/// Cuts a stream of bytes into payloads.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Bytes of the buffer that were returned already.
    consumed: usize,
}

impl Decoder {
    /// Adds bytes that arrived. Memory grows with what arrives, never with what a length promises.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.consumed > 0 {
            self.buffer.drain(..self.consumed);
            self.consumed = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole payload, if it has arrived.
    ///
    /// # Errors
    /// When its length is beyond [`MAX_PAYLOAD`], as soon as the length is known.
    pub fn next_payload(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let rest = self.buffer.get(self.consumed..).unwrap_or_default();
        let Some(payload) = payload_len(rest)? else { return Ok(None) };
        let start = self.consumed + PREFIX_LEN;
        let end = start + payload;
        if self.buffer.len() < end {
            return Ok(None);
        }
        self.consumed = end;
        Ok(self.buffer.get(start..end))
    }

    /// The length of the next payload, once it is known.
    ///
    /// # Errors
    /// When it is beyond [`MAX_PAYLOAD`].
    pub fn announced(&self) -> Result<Option<usize>, FrameError> {
        payload_len(self.buffer.get(self.consumed..).unwrap_or_default())
    }

    /// As [`Self::next_payload`], and the memory of the payload is the caller's.
    ///
    /// # Errors
    /// As [`Self::next_payload`].
    pub fn take_payload(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let start = self.consumed + PREFIX_LEN;
        let Some(payload) = self.next_payload()?.map(<[u8]>::len) else { return Ok(None) };
        // What follows it is the beginning of the next frame at most, and moves.
        let rest = self.buffer.split_off(start + payload);
        let mut taken = std::mem::replace(&mut self.buffer, rest);
        self.consumed = 0;
        taken.drain(..start);
        Ok(Some(taken))
    }

    /// Checks that the stream may end here: between two frames, read or unread.
    ///
    /// # Errors
    /// When a frame has begun and not ended, or has a length that is refused anyway.
    pub fn finish(&self) -> Result<(), FrameError> {
        let mut rest = self.buffer.get(self.consumed..).unwrap_or_default();
        while !rest.is_empty() {
            let expected = PREFIX_LEN + payload_len(rest)?.unwrap_or_default();
            let Some((_, after)) = rest.split_at_checked(expected) else {
                return Err(FrameError::Closed { expected: expected - rest.len() });
            };
            rest = after;
        }
        Ok(())
    }
}

/// The length that the frame at the beginning of `rest` announces, once it is there.
fn payload_len(rest: &[u8]) -> Result<Option<usize>, FrameError> {
    let Some(prefix) = rest.first_chunk::<PREFIX_LEN>() else { return Ok(None) };
    let length = u32::from_be_bytes(*prefix);
    match usize::try_from(length) {
        Ok(payload) if payload <= MAX_PAYLOAD => Ok(Some(payload)),
        _ => Err(FrameError::TooLarge(length.into())),
    }
}

#[cfg(test)]
mod tests;
