//! Small helpers for members and their names: strings read without a copy, absence written as
//! absence.

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
#[must_use]
pub fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// A name as a receipt can carry it: itself, or its hash when it has more than `most` bytes.
#[must_use]
pub fn name_or_hash(name: &str, most: usize) -> Cow<'_, str> {
    if name.len() <= most {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("sha256:{}", sha256_hex(name.as_bytes())))
}

/// A name with its capitals as `_` and a small letter: `serverId` as `server_id`.
#[must_use]
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
