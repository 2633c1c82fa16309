//! Server-sent events (WHATWG HTML, "Server-sent events"): reading them.

mod decoder;
#[cfg(test)]
mod tests;

pub use decoder::{Decoder, SseLimits};

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// What kind of event it is; `message` when it does not say.
    pub event: Option<String>,
    /// What it says. Lines are separated by `\n`.
    pub data: String,
    /// Where to go on after this event when the stream breaks.
    pub id: Option<String>,
    /// After how many milliseconds to connect again when the stream breaks; read as at most a day.
    pub retry: Option<u64>,
}

/// Why events cannot be read. Nothing of an event appears in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// A line that does not end.
    #[error("expected lines of at most {limit} bytes, found a longer one")]
    LineTooLong {
        /// The bound.
        limit: usize,
    },
    /// An event that does not end.
    #[error("expected events of at most {limit} bytes, found a larger one")]
    EventTooLarge {
        /// The bound.
        limit: usize,
    },
    /// Bytes that are no text.
    #[error("expected UTF-8, found other bytes")]
    NotUtf8,
}
