//! Reading what is about to be signed: nothing that was written may be silently left out.

use chio_core::strict::{self, StrictError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a `T`, and refuses members that a `T` does not have.
///
/// Wire types ignore members that they do not know. In a text that was written by hand such a
/// member is a misspelt limit, and a grant without its limit must not be signed.
///
/// # Errors
/// As [`strict::from_slice`], and with the place of the first member that would be lost.
pub(crate) fn from_slice<T: DeserializeOwned + Serialize>(text: &[u8]) -> Result<T, StrictError> {
    let read: T = strict::object_from_slice(text)?;
    let shape = |message| StrictError::Shape { message };
    let written: Value = strict::from_slice(text)?;
    let kept = serde_json::to_value(&read).map_err(|error| shape(error.to_string()))?;
    match lost(&written, &kept, "") {
        None => Ok(read),
        Some(place) => Err(shape(format!("expected only known members, found `{place}`"))),
    }
}

/// The first member of `written` that is not in `kept`. Members that say nothing do not count.
fn lost(written: &Value, kept: &Value, place: &str) -> Option<String> {
    match (written, kept) {
        (Value::Object(written), Value::Object(kept)) => {
            written.iter().find_map(|(name, value)| {
                let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                match kept.get(name) {
                    Some(kept) => lost(value, kept, &place),
                    None if says_nothing(value) => None,
                    None => Some(place),
                }
            })
        }
        (Value::Array(written), Value::Array(kept)) => (written.iter().zip(kept).enumerate())
            .find_map(|(index, (written, kept))| lost(written, kept, &format!("{place}[{index}]"))),
        _ => None,
    }
}

fn says_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use chio_core::capability::{Attenuation, ChioScope};

    use super::from_slice;

    #[track_caller]
    fn check(scope: &str, expected: Option<&str>) {
        let found = from_slice::<ChioScope>(scope.as_bytes()).err().map(|error| error.to_string());
        let expected =
            expected.map(|place| format!("expected only known members, found `{place}`"));
        assert_eq!(found, expected, "{scope}");
    }

    #[test]
    fn a_scope_of_known_members_is_read() {
        check("{}", None);
        check(r#"{"grants": [], "resource_grants": []}"#, None);
        check(
            r#"{"grants": [{"server_id": "s", "tool_name": "t", "operations": ["invoke"],
                "max_invocations": null, "dpop_required": false, "constraints": []}]}"#,
            None,
        );
    }

    #[test]
    fn a_misspelt_member_is_found_wherever_it_is() {
        check(r#"{"grant": [{}]}"#, Some("grant"));
        check(
            r#"{"grants": [{"server_id": "s", "tool_name": "t", "operations": [],
                "max_invocation": 3}]}"#,
            Some("grants[0].max_invocation"),
        );
        let step = br#"{"type": "shorten_expiry", "new_expires_at": 1, "tool_name": "t"}"#;
        assert!(from_slice::<Attenuation>(step).is_err());
    }
}
