//! Reading events from bytes that come in any pieces.

use chio_core::with_defaults;

use super::{Event, SseError};

/// The mark that may stand before the first line.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// The longest time to wait before connecting again, in milliseconds: a day. A stream that asks for
/// more must not be able to ask for ever.
const MAX_RETRY: u64 = 24 * 3600 * 1000;

with_defaults! {
    /// Bounds of what is kept of a stream.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct SseLimits {
        /// Bytes of a line.
        pub max_line: usize = 4 * 1024 * 1024,
        /// Bytes of the data of an event.
        pub max_event: usize = 4 * 1024 * 1024,
    }
}

/// Reads events from bytes that come in any pieces. After an error it reads nothing more.
#[derive(Debug, Default)]
pub struct Decoder {
    limits: SseLimits,
    line: Vec<u8>,
    /// The last byte was `\r`: a `\n` that follows belongs to it.
    after_return: bool,
    began: bool,
    failed: Option<SseError>,
    event: Option<String>,
    data: Option<String>,
    id: Option<String>,
    retry: Option<u64>,
    last_id: Option<String>,
    last_retry: Option<u64>,
}

impl Decoder {
    /// A decoder at the beginning of a stream.
    pub fn new(limits: SseLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The last id that the stream gave, to go on from.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// After how many milliseconds the stream last asked to connect again, at most a day.
    pub const fn last_retry(&self) -> Option<u64> {
        self.last_retry
    }

    /// How many bytes it keeps of an event that is not complete.
    pub fn held(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, String::len)
    }

    /// Takes the next bytes of the stream and gives the events that they complete. An event that
    /// the stream breaks off is never given.
    ///
    /// # Errors
    /// When a line or an event is too large, or a line is no text. What was complete before is lost.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Event>, SseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.read(bytes).inspect_err(|error| {
            self.failed = Some(*error);
            self.line = Vec::new();
            self.data = None;
        })
    }

    fn read(&mut self, bytes: &[u8]) -> Result<Vec<Event>, SseError> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some((first, after)) = rest.split_first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                rest = after;
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (piece, tail) =
                rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or_default();
            if self.line.len() + piece.len() > self.limits.max_line {
                return Err(SseError::LineTooLong { limit: self.limits.max_line });
            }
            self.line.extend_from_slice(piece);
            let Some((end, tail)) = tail.split_first() else { break };
            self.after_return = *end == b'\r';
            rest = tail;
            events.extend(self.end_line()?);
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Result<Option<Event>, SseError> {
        let line = std::mem::take(&mut self.line);
        let mut bytes = line.as_slice();
        if !std::mem::replace(&mut self.began, true) {
            bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
        }
        let text = str::from_utf8(bytes).map_err(|_| SseError::NotUtf8)?;
        if text.is_empty() {
            return Ok(self.dispatch());
        }
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        self.field(name, value.strip_prefix(' ').unwrap_or(value))?;
        // The room is used again for the next line.
        self.line = line;
        self.line.clear();
        Ok(None)
    }

    /// Takes a field. A comment has no name, and unknown names are skipped.
    fn field(&mut self, name: &str, value: &str) -> Result<(), SseError> {
        match name {
            "event" => self.event = Some(value.to_owned()),
            "data" => {
                let data = self.data.get_or_insert_default();
                // Each line but the first brings a line break.
                if data.len() + value.len() + 1 > self.limits.max_event {
                    return Err(SseError::EventTooLarge { limit: self.limits.max_event });
                }
                data.push_str(value);
                data.push('\n');
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                // Digits alone: what is no number is one that is too large.
                self.retry = Some(value.parse().unwrap_or(u64::MAX).min(MAX_RETRY));
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends an event. Without data there is none, but id and retry count.
    fn dispatch(&mut self) -> Option<Event> {
        let (event, id, retry) = (self.event.take(), self.id.take(), self.retry.take());
        if id.is_some() {
            self.last_id.clone_from(&id);
        }
        self.last_retry = retry.or(self.last_retry);
        let mut data = self.data.take()?;
        data.pop();
        Some(Event { event: event.filter(|event| !event.is_empty()), data, id, retry })
    }
}
