//! What can be told of a message that cannot be read, or of which only its beginning and its end are
//! there.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::RequestId;

/// The outermost members of a message, as far as they can be told.
#[derive(Debug, Default, PartialEq)]
pub struct Envelope {
    /// The id, if there is exactly one.
    pub id: Option<RequestId>,
    /// Whether it is a request or a notification.
    pub is_call: bool,
    /// Whether it is a response.
    pub is_response: bool,
}

impl Envelope {
    /// Looks at a text of which the end may be missing.
    pub fn of(text: &[u8]) -> Self {
        let mut found = Found::default();
        // What was found before an error counts.
        let _ = found.deserialize(&mut serde_json::Deserializer::from_slice(text));
        found.envelope()
    }

    /// The same for a text of which the middle is missing. Many writers put the id at its end.
    pub fn of_ends(head: &[u8], tail: &[u8]) -> Self {
        let mut envelope = Self::of(head);
        envelope.id = envelope.id.or_else(|| last_id(tail));
        envelope
    }
}

#[derive(Default)]
struct Found {
    ids: Vec<Option<RequestId>>,
    is_call: bool,
    is_response: bool,
}

impl Found {
    fn envelope(mut self) -> Envelope {
        let id = if self.ids.len() == 1 { self.ids.pop().flatten() } else { None };
        Envelope { id, is_call: self.is_call, is_response: self.is_response && !self.is_call }
    }
}

impl<'de> DeserializeSeed<'de> for &mut Found {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Found {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<String>()? {
            match name.as_str() {
                "id" if self.ids.len() < 2 => {
                    let value = members.next_value::<serde_json::Value>()?;
                    self.ids.push(RequestId::try_from(value).ok());
                    continue;
                }
                "method" => self.is_call = true,
                "result" | "error" => self.is_response = true,
                _ => {}
            }
            members.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// The id among the last members of an object that ends with this text.
fn last_id(tail: &[u8]) -> Option<RequestId> {
    let mut rest = tail.trim_ascii_end().strip_suffix(b"}")?;
    loop {
        let (before, value) = last_token(rest)?;
        let (before, name) = last_token(before.trim_ascii_end().strip_suffix(b":")?)?;
        let before = before.trim_ascii_end();
        if name == b"\"id\"" && before.ends_with(b",") {
            return serde_json::from_slice(value).ok();
        }
        rest = before.strip_suffix(b",")?;
    }
}

/// A number, a word or a string without escapes at the end of a text, and what is before it.
fn last_token(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_end();
    let length = match text.split_last() {
        Some((b'"', rest)) => {
            let length = rest.iter().rev().position(|byte| *byte == b'"')? + 2;
            let token = text.get(text.len().checked_sub(length)?..)?;
            if token.contains(&b'\\') {
                return None;
            }
            length
        }
        _ => {
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
            text.iter().rev().take_while(|byte| plain(byte)).count()
        }
    };
    let (before, token) = text.split_at_checked(text.len().checked_sub(length)?)?;
    (!token.is_empty() && !before.ends_with(b"\\")).then_some((before, token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(envelope: Envelope) -> String {
        let kind = match (envelope.is_call, envelope.is_response) {
            (true, false) => "call",
            (false, true) => "response",
            (false, false) => "unknown",
            (true, true) => "both",
        };
        format!("{kind} {}", envelope.id.map_or_else(|| "-".to_owned(), |id| id.to_string()))
    }

    #[test]
    fn a_message_that_cannot_be_read_is_told_by_its_outermost_members() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"\ud800"}}"#, "call 7"),
            (r#"{"params":{"id":8,"result":1},"method":"m","id":"7"}"#, r#"call "7""#),
            (r#"{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}}"#, "response 7"),
            (r#"{"id":7,"error":{"#, "response 7"),
            (r#"{"id":7,"id":8,"method":"m"}"#, "call -"),
            (r#"{"id":1.5,"method":"m"}"#, "call -"),
            (r#"{"method":"m","params":{"text":"x"#, "call -"),
            (r#"{"id":7,"method":"m","result":1}"#, "call 7"),
            (r#"[{"id":7}]"#, "unknown -"),
            ("hello", "unknown -"),
            ("", "unknown -"),
        ] {
            assert_eq!(told(Envelope::of(text.as_bytes())), expected, "{text}");
        }
    }

    #[test]
    fn the_end_of_a_long_message_may_have_its_id() {
        let head = br#"{"method":"tools/call","params":{"text":"xx"#;
        for (tail, expected) in [
            (r#"xx"}},"jsonrpc":"2.0","id":5}"#, "call 5"),
            (r#"xx"}}, "id": "a-1" , "jsonrpc": "2.0" } "#, r#"call "a-1""#),
            // None of these is an outermost member of that name.
            (r#"xx","id":5}}"#, "call -"),
            (r#"xx"}},"x\"id":5}"#, "call -"),
            (r#"xx"}},"id":"a\"b"}"#, "call -"),
            (r#"id":5}"#, "call -"),
            (r#":5}"#, "call -"),
            ("}", "call -"),
            ("", "call -"),
        ] {
            assert_eq!(told(Envelope::of_ends(head, tail.as_bytes())), expected, "{tail}");
        }
        let named = br#"{"jsonrpc":"2.0","id":4,"result":{"text":"xx"#;
        assert_eq!(told(Envelope::of_ends(named, br#"xx"},"id":9}"#)), "response 4");
    }
}
