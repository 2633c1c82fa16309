//! Whether a protocol can be used right now.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Whether a protocol can be used right now, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteAvailabilityStatus {
    available: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'static, str>>,
}

impl RouteAvailabilityStatus {
    /// It can.
    pub const fn available() -> Self {
        Self { available: true, reason: None }
    }

    /// It cannot, for this reason.
    pub fn unavailable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { available: false, reason: Some(reason.into()) }
    }

    /// Whether it can.
    #[must_use]
    pub const fn is_available(&self) -> bool {
        self.available
    }

    /// Why it cannot, if a reason was given.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Why it cannot, for evidence.
    pub(super) fn why_not(&self) -> Option<Cow<'static, str>> {
        let unsaid = || Cow::Borrowed("declared unavailable without a reason");
        (!self.available).then(|| self.reason.clone().unwrap_or_else(unsaid))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_is_written_as_published() {
        for (status, written) in [
            (RouteAvailabilityStatus::available(), json!({"available": true})),
            (
                RouteAvailabilityStatus::unavailable("down"),
                json!({"available": false, "reason": "down"}),
            ),
            (
                RouteAvailabilityStatus::unavailable(String::from("down")),
                json!({"available": false, "reason": "down"}),
            ),
        ] {
            assert_eq!(serde_json::to_value(&status).unwrap(), written);
            assert_eq!(serde_json::from_value::<RouteAvailabilityStatus>(written).unwrap(), status);
        }
    }

    // covers: CROSS-032
    #[test]
    fn only_an_unavailable_protocol_has_a_reason() {
        let read = |value| serde_json::from_value::<RouteAvailabilityStatus>(value).unwrap();
        assert_eq!(read(json!({"available": true, "reason": "x"})).why_not(), None);
        assert_eq!(RouteAvailabilityStatus::unavailable("down").why_not().unwrap(), "down");
        assert!(read(json!({"available": false})).why_not().unwrap().contains("without a reason"));
    }
}
