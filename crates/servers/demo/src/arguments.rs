//! Reading a tool's arguments. Messages name members and never repeat values.

use chio_kernel::KernelError;
use serde_json::{Map, Value};

use crate::manifest::MAX_TEXT;

/// The longest name of a note.
pub(crate) const MAX_NAME: usize = 64;

/// The arguments of one call. Every member has to be taken: a leftover is an error.
pub(crate) struct Arguments(Map<String, Value>);

pub(crate) fn failure(message: impl Into<String>) -> KernelError {
    KernelError::ToolServerError(message.into())
}

impl Arguments {
    /// The members of an object. `null` stands for an empty one.
    pub(crate) fn new(arguments: Value) -> Result<Self, KernelError> {
        match arguments {
            Value::Object(members) => Ok(Self(members)),
            Value::Null => Ok(Self(Map::new())),
            _ => Err(failure("expected the arguments as an object")),
        }
    }

    /// A text, if there is one.
    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<String>, KernelError> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() <= MAX_TEXT => Ok(Some(text)),
            Some(_) => {
                Err(failure(format!("expected `{name}` as text of at most {MAX_TEXT} bytes")))
            }
        }
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &str) -> Result<String, KernelError> {
        let missing = || failure(format!("expected `{name}`, found none"));
        self.optional_text(name)?.ok_or_else(missing)
    }

    /// The name of a note.
    pub(crate) fn note_name(&mut self) -> Result<String, KernelError> {
        let name = self.text("name")?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
            return Err(failure(format!(
                "expected `name` as 1 to {MAX_NAME} letters, digits, `-` or `_`"
            )));
        }
        Ok(name)
    }

    /// A whole number from 0 to `most`.
    pub(crate) fn number(&mut self, name: &str, most: u64) -> Result<u64, KernelError> {
        let number = self.0.remove(name).as_ref().and_then(Value::as_u64);
        let expected = || failure(format!("expected `{name}` as a whole number from 0 to {most}"));
        number.filter(|number| *number <= most).ok_or_else(expected)
    }

    /// Checks that nothing is left over.
    pub(crate) fn finish(self) -> Result<(), KernelError> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(failure("expected no other arguments than the tool's schema names"))
    }
}
