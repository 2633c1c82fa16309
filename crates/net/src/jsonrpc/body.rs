//! The result of a response: a tree, or text that was written before.

use std::borrow::Cow;

use chio_core::canonical::Written;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::write;

/// A result. Text that was written before is copied into the response, and never read again.
#[derive(Debug, Clone)]
pub struct Body(Form);

#[derive(Debug, Clone)]
enum Form {
    Tree(Value),
    /// One JSON value on one line.
    Text(String),
}

impl Body {
    /// What a value is written as, without a tree in between.
    pub fn written(value: &impl Serialize) -> Self {
        Self(Form::Text(write::json(value)))
    }

    /// The value.
    pub fn into_value(self) -> Value {
        match self.0 {
            Form::Tree(value) => value,
            Form::Text(text) => reread(&text),
        }
    }

    /// The value as text, without line breaks.
    pub fn into_text(self) -> String {
        match self.0 {
            Form::Tree(value) => write::json(&value),
            Form::Text(text) => text,
        }
    }

    fn value(&self) -> Cow<'_, Value> {
        match &self.0 {
            Form::Tree(value) => Cow::Borrowed(value),
            Form::Text(text) => Cow::Owned(reread(text)),
        }
    }

    /// The value as text, without line breaks.
    pub(super) fn to_text(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Tree(value) => Cow::Owned(write::json(value)),
            Form::Text(text) => Cow::Borrowed(text),
        }
    }
}

fn reread(text: &str) -> Value {
    // Only text that was read or written as JSON gets here.
    serde_json::from_str(text).unwrap_or_default()
}

/// By value: text equals the tree that it says.
impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl From<Value> for Body {
    fn from(value: Value) -> Self {
        Self(Form::Tree(value))
    }
}

impl From<&Written> for Body {
    fn from(written: &Written) -> Self {
        Self(Form::Text(written.as_str().into()))
    }
}

impl From<Box<RawValue>> for Body {
    fn from(raw: Box<RawValue>) -> Self {
        // Transports frame by lines. In JSON, line breaks stand between tokens only.
        if raw.get().contains(['\n', '\r']) {
            return Self(Form::Text(raw.get().replace(['\n', '\r'], "")));
        }
        Self(Form::Text(Box::<str>::from(raw).into()))
    }
}
