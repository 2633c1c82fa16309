//! Small helpers for members, their names, and text that came from outside.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::hash::sha256_hex;

/// A string that is borrowed from the input when it holds no escapes.
#[derive(Debug, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Whether an optional member of any JSON is left out. `null` reads back as absent, so it is
/// written as absent: otherwise an artifact would not survive its own text.
pub(crate) fn is_absent(member: &Option<Value>) -> bool {
    member.as_ref().is_none_or(Value::is_null)
}

/// The members of an object that was written as one; none of any other value.
pub fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// A name as a receipt can carry it: itself, or its hash when it has more than `most` bytes.
pub fn name_or_hash(name: &str, most: usize) -> Cow<'_, str> {
    if name.len() <= most {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("sha256:{}", sha256_hex(name.as_bytes())))
}

/// A name with its capitals as `_` and a small letter: `serverId` as `server_id`.
pub fn snake_case(name: &str) -> String {
    let mut spelled = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            spelled.push('_');
        }
        spelled.push(letter.to_ascii_lowercase());
    }
    spelled
}

/// The first characters of a text, at most `max`, without control characters.
pub fn printable(text: &str, max: usize) -> String {
    text.chars().filter(|character| !character.is_control()).take(max).collect()
}

/// Whether a text is not empty, and has no blanks around it and no control characters.
#[must_use]
pub fn is_sound(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_blanks_around_a_text_are_not_sound() {
        for (text, sound, shown) in [
            ("a b", true, "a b"),
            ("", false, ""),
            (" a", false, " a"),
            ("a\n", false, "a"),
            ("a\u{7f}b", false, "ab"),
            ("äöüßé", true, "äöüß"),
        ] {
            assert_eq!((is_sound(text), &*printable(text, 4)), (sound, shown), "{text:?}");
        }
    }
}
