//! Values that were written in canonical form before, and are copied from then on.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{CanonicalError, to_string};

/// The name by which the canonical writer knows such a value.
pub(super) const WRITTEN: &str = "$chio::canonical::Written";
/// The name by which `serde_json` knows text that is copied.
pub(super) const RAW: &str = "$serde_json::private::RawValue";

/// A value in its canonical form. Writing it again copies the text, here and in `serde_json`.
#[derive(Debug, Clone)]
pub struct Written(Box<RawValue>);

impl Written {
    /// Writes a value.
    ///
    /// # Errors
    /// As [`super::to_vec`].
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, CanonicalError> {
        let text = to_string(value)?;
        let raw = RawValue::from_string(text);
        raw.map(Self).map_err(|error| CanonicalError::Custom(error.to_string()))
    }

    /// The canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // What was written can be read.
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

impl PartialEq for Written {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Written {}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(WRITTEN, &self.0)
    }
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text may be anybody's, so it is written anew.
        let value = Value::deserialize(deserializer)?;
        Self::of(&value).map_err(serde::de::Error::custom)
    }
}
