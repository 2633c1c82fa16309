//! Small helpers for members: strings read without a copy, absence written as absence.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

/// A string that is borrowed from the input when it holds no escapes.
#[derive(Debug, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Whether an optional member of any JSON is left out. `null` reads back as absent, so it is
/// written as absent: otherwise an artifact would not survive its own text.
pub(crate) fn is_absent(member: &Option<Value>) -> bool {
    member.as_ref().is_none_or(Value::is_null)
}
