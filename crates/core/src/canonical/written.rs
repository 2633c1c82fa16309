//! Values that were written in canonical form before, and are copied from then on.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{CanonicalError, Scratch, to_string};

/// The name by which the canonical writer recognises such a value.
pub(super) const WRITTEN: &str = "$chio::canonical::Written";
/// The name by which `serde_json` recognises text that is copied.
pub(super) const RAW: &str = "$serde_json::private::RawValue";

/// A value in its canonical form. Writing it again copies the text, here and in `serde_json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written(String);

impl Written {
    /// Writes a value.
    ///
    /// # Errors
    /// As [`super::to_vec`].
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, CanonicalError> {
        to_string(value).map(Self)
    }

    /// Writes a value with a buffer that is reused.
    ///
    /// # Errors
    /// As [`super::to_vec`].
    pub fn with<T: Serialize + ?Sized>(
        scratch: &mut Scratch,
        value: &T,
    ) -> Result<Self, CanonicalError> {
        let bytes = scratch.write(value)?.to_vec();
        let text = String::from_utf8(bytes);
        text.map(Self).map_err(|error| CanonicalError::Custom(error.to_string()))
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value.
    pub fn to_value(&self) -> Value {
        // What was written can be read.
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(WRITTEN, &Text(&self.0))
    }
}

/// The text of a value that was written.
struct Text<'a>(&'a str);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The canonical writer returns false after it has seen the name, and then copies.
        if !serializer.is_human_readable() {
            return serializer.serialize_str(self.0);
        }
        let raw: &RawValue = serde_json::from_str(self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text is untrusted, so it is written anew.
        let value = Value::deserialize(deserializer)?;
        Self::of(&value).map_err(serde::de::Error::custom)
    }
}
