//! One call of a tool, as the tool sees it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cancel::Cancel;
use crate::rpc::Fault;
use crate::session::Session;
use crate::wire::Unanswered;

/// A call that runs.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) session: Arc<Session>,
    /// The id of the request.
    pub(crate) id: Value,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) meta: Value,
    pub(crate) progress_token: Option<Value>,
    /// The message of A2A that it was called for, if it says.
    pub(crate) a2a_message: Option<String>,
    pub(crate) cancel: Arc<Cancel>,
}

/// Why a call has no good result.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The tool failed: a result that says so.
    Failed(String),
    /// The request failed: an error of JSON-RPC.
    Fault(Fault),
    /// The call is not answered: it was cancelled, or has answered itself.
    Silent,
}

/// What a tool gives: a whole result.
pub(crate) type Outcome = Result<Value, Stop>;

/// A result of one text.
pub(crate) fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

/// A result that says what went wrong.
pub(crate) fn failure(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}], "isError": true})
}

impl Call {
    /// An argument that is a text.
    pub(crate) fn text(&self, name: &str) -> Result<&str, Stop> {
        let found = self.arguments.get(name).and_then(Value::as_str);
        found.ok_or_else(|| Stop::Failed(format!("expected an argument `{name}` that is a text")))
    }

    /// An argument that is a whole number.
    pub(crate) fn number(&self, name: &str) -> Result<u64, Stop> {
        let found = self.arguments.get(name).and_then(Value::as_u64);
        found.ok_or_else(|| {
            Stop::Failed(format!("expected an argument `{name}` that is a whole number"))
        })
    }

    /// Works for so long, or until it is cancelled.
    pub(crate) fn pause(&self, milliseconds: u64) -> Result<(), Stop> {
        let cancelled = self.cancel.wait(Duration::from_millis(milliseconds));
        if cancelled { Err(Stop::Silent) } else { Ok(()) }
    }

    /// Tells how far it is, if the caller wants to know.
    pub(crate) fn progress(&self, progress: u64, total: u64) {
        if let Some(token) = &self.progress_token {
            self.progress_of(token, progress, total);
        }
    }

    /// As [`Call::progress`], whatever the caller wants.
    pub(crate) fn progress_of(&self, token: &Value, progress: u64, total: u64) {
        let params = json!({
            "progressToken": token,
            "progress": progress,
            "total": total,
            "message": format!("{progress} of {total}"),
        });
        self.session.wire.notify("notifications/progress", &params);
    }

    /// Asks the client something that it said it can do.
    pub(crate) fn ask(
        &self,
        capability: &str,
        method: &str,
        params: Option<Value>,
    ) -> Result<Value, Stop> {
        if !self.session.client_can(capability) {
            return Err(Stop::Failed(format!(
                "the client did not say that it can do {capability}"
            )));
        }
        self.session.wire.ask(method, params, &self.cancel).map_err(|why| match why {
            Unanswered::Refused(said) => Stop::Failed(format!("the client refused: {said}")),
            Unanswered::Cancelled => Stop::Silent,
        })
    }
}
