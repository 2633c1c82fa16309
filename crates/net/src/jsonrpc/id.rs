//! The name that a request has, and its answer repeats.

use std::fmt;

use chio_core::strict::kind;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::RpcError;

/// A string, an integer of at most 64 bits, or null; `7` and `"7"` are two ids.
///
/// A member that is read as `Option<RequestId>` takes null for absent, as `serde` does.
// Never a fraction: those have several forms, and no safe equality.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct RequestId(Value);

impl RequestId {
    /// The id of an answer to a message whose own id cannot be told.
    pub const NULL: Self = Self(Value::Null);

    /// Whether it is null, which several protocols refuse.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self.0, Value::Null)
    }

    /// The number, if it is one without a sign.
    pub fn as_u64(&self) -> Option<u64> {
        self.0.as_u64()
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_str()
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self(number.into())
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self(number.into())
    }
}

impl TryFrom<Value> for RequestId {
    type Error = RpcError;

    fn try_from(value: Value) -> Result<Self, RpcError> {
        let found = match &value {
            Value::Null | Value::String(_) => return Ok(Self(value)),
            Value::Number(number) if number.is_i64() || number.is_u64() => return Ok(Self(value)),
            Value::Number(_) => "another number",
            other => kind(other),
        };
        Err(RpcError::invalid_request(format!(
            "expected an id that is a string, an integer of at most 64 bits or null, found {found}"
        )))
    }
}

/// As JSON, so that `7` and `"7"` stay apart.
impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::try_from(value).map_err(|error| serde::de::Error::custom(error.message))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_id_is_written_as_it_was_read() {
        for text in [
            "null",
            "0",
            "7",
            "-7",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615",
            r#""""#,
            r#""7""#,
            r#""null""#,
            r#""a\"b\\c\nü""#,
        ] {
            let id: RequestId = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), text);
            assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_id_is_refused_by_its_kind() {
        for (text, found) in [
            ("1.5", "another number"),
            ("1.0", "another number"),
            ("1e2", "another number"),
            ("-0", "another number"),
            ("18446744073709551616", "another number"),
            ("-9223372036854775809", "another number"),
            ("true", "a boolean"),
            ("[1]", "an array"),
            ("{}", "an object"),
        ] {
            let error = serde_json::from_str::<RequestId>(text).unwrap_err().to_string();
            assert!(error.ends_with(&format!("or null, found {found}")), "{text}: {error}");
        }
    }

    #[test]
    fn equal_ids_are_one_key_and_others_are_not() {
        let ids = ["7", r#""7""#, "null", r#""null""#, "-7"];
        let read = |text: &&str| serde_json::from_str::<RequestId>(text).unwrap();
        let keys: HashSet<_> = ids.iter().map(read).collect();
        assert_eq!(keys.len(), ids.len());
        for known in [7_i64.into(), 7_u64.into(), "7".into(), RequestId::NULL, (-7_i64).into()] {
            assert!(keys.contains(&known), "{known}");
        }
        assert_eq!(RequestId::from("7").as_str(), Some("7"));
        assert_eq!(RequestId::from(7_u64).as_str(), None);
        assert!(RequestId::NULL.is_null() && !RequestId::from("null").is_null());
    }
}
