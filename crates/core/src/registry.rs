//! The error registry: one numeric code for each kind of refusal, the same on every surface.
//!
//! `spec/errors/chio-error-registry.v1.json` is the published form; a test keeps the two equal.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::receipt::Execution;

/// Who or what a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Versions, sessions, message shapes.
    Protocol,
    /// Who is calling.
    Auth,
    /// What the token allows.
    Capability,
    /// What policy allows.
    Guard,
    /// Counts and money.
    Budget,
    /// The tool server.
    Tool,
    /// Chio itself.
    Internal,
}

/// What a caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryStrategy {
    /// Nothing changes by trying again.
    DoNotRetry,
    /// Speak a version that is supported.
    DoNotRetryUntilVersionChange,
    /// Open a new session.
    Reinitialize,
    /// Renew the credentials.
    RetryAfterRefresh,
    /// Get a fresh capability.
    RetryAfterReissue,
    /// Wait for more budget.
    RetryAfterBudgetChange,
    /// Try again, later and later.
    RetryWithBackoff,
}

/// One row of the registry.
struct Row {
    number: u16,
    name: &'static str,
    category: Category,
    transient: bool,
    retry: RetryStrategy,
    jsonrpc: Option<i32>,
    native: Option<&'static str>,
}

/// Defines [`ErrorCode`] from the rows of the registry.
macro_rules! registry {
    ($($code:ident: $number:literal, $name:literal, $category:ident, transient $transient:literal,
       $retry:ident, jsonrpc $jsonrpc:expr, native $native:expr;)*) => {
        /// A registered kind of refusal.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = concat!(stringify!($number), ", `", $name, "`.")] $code,)*
        }

        impl ErrorCode {
            /// Every code, by number.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$code),*];

            const fn row(self) -> Row {
                match self {
                    $(Self::$code => Row {
                        number: $number,
                        name: $name,
                        category: Category::$category,
                        transient: $transient,
                        retry: RetryStrategy::$retry,
                        jsonrpc: $jsonrpc,
                        native: $native,
                    },)*
                }
            }
        }
    };
}

registry! {
    ProtocolVersionUnsupported: 1000, "protocol_version_unsupported", Protocol, transient false,
        DoNotRetryUntilVersionChange, jsonrpc Some(-32600), native None;
    SessionNotInitialized: 1001, "session_not_initialized", Protocol, transient false,
        Reinitialize, jsonrpc Some(-32002), native None;
    InvalidRequestShape: 1002, "invalid_request_shape", Protocol, transient false,
        DoNotRetry, jsonrpc Some(-32600), native None;
    AuthMissingOrInvalid: 1100, "auth_missing_or_invalid", Auth, transient true,
        RetryAfterRefresh, jsonrpc None, native None;
    CapabilityDenied: 2100, "capability_denied", Capability, transient false,
        DoNotRetry, jsonrpc None, native Some("capability_denied");
    CapabilityExpired: 2101, "capability_expired", Capability, transient false,
        RetryAfterReissue, jsonrpc None, native Some("capability_expired");
    CapabilityRevoked: 2102, "capability_revoked", Capability, transient false,
        RetryAfterReissue, jsonrpc None, native Some("capability_revoked");
    GuardDenied: 3100, "guard_denied", Guard, transient false,
        DoNotRetry, jsonrpc None, native Some("policy_denied");
    BudgetExhausted: 4100, "budget_exhausted", Budget, transient true,
        RetryAfterBudgetChange, jsonrpc None, native None;
    ToolServerError: 5100, "tool_server_error", Tool, transient false,
        DoNotRetry, jsonrpc None, native Some("tool_server_error");
    InternalError: 6100, "internal_error", Internal, transient true,
        RetryWithBackoff, jsonrpc None, native Some("internal_error");
}

impl ErrorCode {
    /// The number.
    pub const fn number(self) -> u16 {
        self.row().number
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The category.
    pub const fn category(self) -> Category {
        self.row().category
    }

    /// Whether the same request may succeed later, whatever is known of what became of it.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        self.row().transient
    }

    /// What the caller can do, whatever is known of what became of the request.
    pub const fn retry(self) -> RetryStrategy {
        self.row().retry
    }

    /// What the caller can do about a call of which this became at its tool: trying again must not
    /// run it twice.
    pub const fn retry_after(self, execution: Option<Execution>) -> RetryStrategy {
        match (execution, self.category()) {
            (Some(Execution::NotBegun), Category::Tool) => RetryStrategy::RetryWithBackoff,
            (Some(Execution::NotBegun), _) => self.retry(),
            _ => RetryStrategy::DoNotRetry,
        }
    }

    /// The JSON-RPC error code that carries it, where one is fixed.
    pub const fn jsonrpc_code(self) -> Option<i32> {
        self.row().jsonrpc
    }

    /// The `code` of a native `ToolCallError`, where there is one.
    pub const fn native_name(self) -> Option<&'static str> {
        self.row().native
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.number())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(self.number())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u16::deserialize(deserializer)?;
        let code = Self::ALL.into_iter().find(|code| code.number() == number);
        code.ok_or_else(|| D::Error::custom(format!("expected a registered code, found {number}")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_may_have_run_is_not_tried_again() {
        let begun = [Execution::Begun, Execution::Completed, Execution::Failed, Execution::Unknown];
        for code in ErrorCode::ALL {
            let not_begun = code.retry_after(Some(Execution::NotBegun));
            let expected = match code {
                ErrorCode::ToolServerError => RetryStrategy::RetryWithBackoff,
                other => other.retry(),
            };
            assert_eq!(not_begun, expected, "{code}");
            for execution in begun.map(Some).into_iter().chain([None]) {
                assert_eq!(code.retry_after(execution), RetryStrategy::DoNotRetry, "{code}");
            }
        }
        assert_eq!(ErrorCode::ToolServerError.retry(), RetryStrategy::DoNotRetry);
    }

    // covers: WIRE-114..WIRE-117
    #[test]
    fn the_published_registry_says_what_the_code_says() {
        let text = include_str!("../../../spec/errors/chio-error-registry.v1.json");
        let published: Value = serde_json::from_str(text).unwrap();
        let rows = published["codes"].as_array().unwrap();
        assert_eq!(rows.len(), ErrorCode::ALL.len());
        for (row, code) in rows.iter().zip(ErrorCode::ALL) {
            assert_eq!(row["code"], json!(code.number()));
            assert_eq!(row["name"], json!(code.name()));
            assert_eq!(row["category"], json!(code.category()), "{code}");
            assert_eq!(row["transient"], json!(code.is_transient()), "{code}");
            assert_eq!(row["retry"]["strategy"], json!(code.retry()), "{code}");
            assert!(row["retry"]["guidance"].as_str().unwrap().len() > 20, "{code}");
            assert_eq!(row.get("jsonrpcCode"), code.jsonrpc_code().map(|n| json!(n)).as_ref());
            assert_eq!(row.get("nativeWireName"), code.native_name().map(|n| json!(n)).as_ref());
        }
        let mut numbers: Vec<_> = ErrorCode::ALL.iter().map(|code| code.number()).collect();
        numbers.dedup();
        assert_eq!(numbers.len(), ErrorCode::ALL.len(), "every code has its own number");
    }
}
