//! Errors, as each dialect and binding writes them.

use axum::http::StatusCode;
use chio_core::text::printable;
use chio_net::jsonrpc::RpcError;
use serde_json::{Value, json};

/// How many characters of a name an error repeats.
const MAX_SHOWN: usize = 64;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No task of the caller has this id.
    TaskNotFound,
    /// No skill has this id.
    SkillNotFound,
    /// The task cannot be cancelled any more.
    TaskNotCancelable,
    /// There are no push notifications.
    PushNotSupported,
    /// The operation is not supported, or not for this task.
    Unsupported,
    /// A part of a message has a content type that is not accepted.
    ContentType,
    /// The content type of a request is not JSON.
    MediaType,
    /// The version is not supported.
    Version,
    /// Not JSON.
    Parse,
    /// Not a request.
    Request,
    /// Unknown method.
    Method,
    /// Invalid params.
    Params,
    /// An error of this server.
    Internal,
    /// Too many requests at once.
    Busy,
}

/// Why an operation failed. Never repeats a value of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) message: String,
}

impl Kind {
    /// The code in JSON-RPC, and the reason that A2A has for it; none for JSON-RPC's own errors.
    const fn code(self) -> (i64, Option<&'static str>) {
        match self {
            Self::TaskNotFound => (-32001, Some("TASK_NOT_FOUND")),
            Self::TaskNotCancelable => (-32002, Some("TASK_NOT_CANCELABLE")),
            Self::PushNotSupported => (-32003, Some("PUSH_NOTIFICATION_NOT_SUPPORTED")),
            Self::Unsupported => (-32004, Some("UNSUPPORTED_OPERATION")),
            Self::ContentType | Self::MediaType => (-32005, Some("CONTENT_TYPE_NOT_SUPPORTED")),
            Self::Version => (-32009, Some("VERSION_NOT_SUPPORTED")),
            Self::Parse => (RpcError::PARSE_ERROR, None),
            Self::Request => (RpcError::INVALID_REQUEST, None),
            Self::Method => (RpcError::METHOD_NOT_FOUND, None),
            Self::Params | Self::SkillNotFound => (RpcError::INVALID_PARAMS, None),
            Self::Internal | Self::Busy => (RpcError::INTERNAL_ERROR, None),
        }
    }

    /// The code in the dialect of Chio's documents, which knows only JSON-RPC's own.
    const fn seed_code(self) -> i64 {
        match (self, self.code()) {
            (Self::MediaType | Self::Version, _) => RpcError::INVALID_REQUEST,
            (_, (_, Some(_))) => RpcError::INVALID_PARAMS,
            (_, (code, None)) => code,
        }
    }

    /// The status of HTTP+JSON, and its name.
    const fn status(self) -> (StatusCode, &'static str) {
        match self {
            Self::TaskNotFound => (StatusCode::NOT_FOUND, "NOT_FOUND"),
            Self::Method => (StatusCode::NOT_FOUND, "UNIMPLEMENTED"),
            Self::TaskNotCancelable
            | Self::PushNotSupported
            | Self::Unsupported
            | Self::Version => (StatusCode::BAD_REQUEST, "FAILED_PRECONDITION"),
            Self::ContentType
            | Self::Parse
            | Self::Request
            | Self::Params
            | Self::SkillNotFound => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT"),
            Self::MediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "INVALID_ARGUMENT"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
        }
    }
}

impl Fault {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Invalid params.
    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self::new(Kind::Params, message)
    }

    /// No such task, or one of another caller: the error is the same.
    pub(crate) fn no_task(id: &str) -> Self {
        // The id came from the client, and is no secret.
        Self::new(Kind::TaskNotFound, printable(id, MAX_SHOWN))
    }

    /// No such skill.
    pub(crate) fn no_skill(id: &str) -> Self {
        // The id came from the client, and is no secret.
        Self::new(Kind::SkillNotFound, printable(id, MAX_SHOWN))
    }

    /// Nothing may be released, because nothing could be made durable.
    pub(crate) fn unreleased() -> Self {
        Self::new(Kind::Internal, "no receipt could be made durable, so nothing is released")
    }

    /// The error of A2A 1.0: with a reason, where A2A has one.
    pub(crate) fn into_v1(self) -> RpcError {
        let info = self.info();
        let error = RpcError::new(self.kind.code().0, self.full_message());
        match info {
            Some(info) => error.with_data(json!([info])),
            None => error,
        }
    }

    /// The error of A2A 0.3.
    pub(crate) fn into_v03(self) -> RpcError {
        RpcError::new(self.kind.code().0, self.full_message())
    }

    /// The error of Chio's documents: a code and a message.
    pub(crate) fn into_seed(self) -> RpcError {
        RpcError::new(self.kind.seed_code(), self.message)
    }

    /// The error of HTTP+JSON.
    pub(crate) fn to_http(&self) -> (StatusCode, Value) {
        let (status, name) = self.kind.status();
        (status, http_error(status, name, &self.full_message(), self.info()))
    }

    fn full_message(&self) -> String {
        match self.kind {
            Kind::TaskNotFound => format!("there is no task `{}` of this caller", self.message),
            Kind::SkillNotFound => {
                format!("there is no skill `{}`: expected one of the agent's card", self.message)
            }
            _ => self.message.clone(),
        }
    }

    fn info(&self) -> Option<Value> {
        let reason = self.kind.code().1?;
        Some(json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason,
            "domain": "a2a-protocol.org",
            "metadata": {},
        }))
    }
}

/// The body of an error over HTTP+JSON.
pub(crate) fn http_error(
    status: StatusCode,
    name: &str,
    message: &str,
    info: Option<Value>,
) -> Value {
    let details: Vec<Value> = info.into_iter().collect();
    let error =
        json!({"code": status.as_u16(), "status": name, "message": message, "details": details});
    json!({"error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_its_code_in_each_dialect() {
        for (kind, v1, seed, reason) in [
            (Kind::TaskNotFound, -32001, -32602, Some("TASK_NOT_FOUND")),
            (Kind::TaskNotCancelable, -32002, -32602, Some("TASK_NOT_CANCELABLE")),
            (Kind::PushNotSupported, -32003, -32602, Some("PUSH_NOTIFICATION_NOT_SUPPORTED")),
            (Kind::Unsupported, -32004, -32602, Some("UNSUPPORTED_OPERATION")),
            (Kind::ContentType, -32005, -32602, Some("CONTENT_TYPE_NOT_SUPPORTED")),
            (Kind::MediaType, -32005, -32600, Some("CONTENT_TYPE_NOT_SUPPORTED")),
            (Kind::Version, -32009, -32600, Some("VERSION_NOT_SUPPORTED")),
            (Kind::SkillNotFound, -32602, -32602, None),
            (Kind::Parse, -32700, -32700, None),
            (Kind::Request, -32600, -32600, None),
            (Kind::Method, -32601, -32601, None),
            (Kind::Params, -32602, -32602, None),
            (Kind::Internal, -32603, -32603, None),
            (Kind::Busy, -32603, -32603, None),
        ] {
            let fault = Fault::new(kind, "why");
            let error = fault.clone().into_v1();
            assert_eq!(error.code, v1, "{kind:?}");
            let found = error.data.map(|data| data[0]["reason"].clone());
            assert_eq!(found, reason.map(Value::from), "{kind:?}");
            assert_eq!(fault.clone().into_v03(), RpcError::new(v1, fault.full_message()));
            assert_eq!(fault.into_seed(), RpcError::new(seed, "why"), "code and message only");
        }
    }

    #[test]
    fn an_error_over_http_has_status_and_reason() {
        let (status, body) = Fault::no_task("a2a-task-7").to_http();
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert_eq!(body["error"]["code"], 404);
        assert_eq!(body["error"]["status"], "NOT_FOUND");
        assert_eq!(body["error"]["details"][0]["reason"], "TASK_NOT_FOUND");
        assert_eq!(Fault::params("x").to_http().1["error"]["details"], json!([]));
    }

    #[test]
    fn a_name_that_is_repeated_is_short_and_on_one_line() {
        let message = Fault::no_task(&format!("a\n{}", "x".repeat(100))).into_seed().message;
        assert_eq!(message.len(), 64);
        assert!(!message.contains('\n'));
    }
}
