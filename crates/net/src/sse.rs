//! Server-sent events (WHATWG HTML, "Server-sent events"): reading and writing.

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

/// Why events cannot be read or written. Nothing of an event appears in it.
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
    /// A name that would become several lines.
    #[error("expected `{member}` on one line and without NUL, found a line break or NUL")]
    BrokenMember {
        /// `event` or `id`.
        member: &'static str,
    },
}

impl Event {
    /// An event that only has data.
    pub fn message(data: impl Into<String>) -> Self {
        Self { data: data.into(), ..Self::default() }
    }

    /// The event as text. Line breaks of the data, whichever they are, are read as `\n` again.
    ///
    /// # Errors
    /// When `event` or `id` would break the line that it stands on.
    pub fn encode(&self) -> Result<String, SseError> {
        let mut text = String::new();
        if let Some(event) = self.event.as_deref().filter(|event| !event.is_empty()) {
            put(&mut text, "event", one_line("event", event)?);
        }
        if let Some(id) = &self.id {
            put(&mut text, "id", one_line("id", id)?);
        }
        if let Some(retry) = self.retry {
            put(&mut text, "retry", &retry.to_string());
        }
        let data = self.data.replace("\r\n", "\n");
        for line in data.split(['\n', '\r']) {
            put(&mut text, "data", line);
        }
        text.push('\n');
        Ok(text)
    }
}

/// A comment, which readers skip: it keeps an idle connection open.
pub fn comment(text: &str) -> String {
    let mut out = String::new();
    for line in text.split(['\n', '\r']) {
        out.push_str(": ");
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
    out
}

fn put(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str(": ");
    text.push_str(value);
    text.push('\n');
}

fn one_line<'a>(member: &'static str, value: &'a str) -> Result<&'a str, SseError> {
    if value.contains(['\n', '\r', '\0']) {
        return Err(SseError::BrokenMember { member });
    }
    Ok(value)
}
