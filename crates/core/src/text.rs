//! Reading a JSON string without copying it where the input allows.

use std::borrow::Cow;

use serde::Deserialize;

/// A string that is borrowed from the input when it holds no escapes.
#[derive(Debug, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);
