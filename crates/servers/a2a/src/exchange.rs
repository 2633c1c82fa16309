//! One request to an interface, and what its answer says in the terms of the binding.

use chio_core::strict;
use chio_net::client::{EventStream, Response, ResponseStream};
use chio_net::sse::{Event, SseLimits};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::auth::Credentials;
use crate::error::AgentError;
use crate::interface::{Binding, Interface};
use crate::secret::hide;
use crate::transport::{Call, Transport};
use crate::wire::Outgoing;

const JSON: &str = "application/json";
const JSON_OR_A2A: &str = "application/a2a+json, application/json";
const EVENTS: &str = "text/event-stream";

/// One request to an interface.
pub(crate) struct Exchange<'a> {
    pub(crate) transport: &'a Transport,
    pub(crate) credentials: &'a Credentials,
    pub(crate) interface: &'a Interface,
    /// What a JSON-RPC answer has to name.
    pub(crate) id: u64,
}

impl Exchange<'_> {
    /// Sends a request and reads its result; none when the answer has none.
    ///
    /// # Errors
    /// When there is no answer, or it is an error.
    pub(crate) async fn call(&self, outgoing: &Outgoing) -> Result<Option<Value>, AgentError> {
        let accept = match self.interface.binding {
            Binding::JsonRpc => JSON,
            Binding::HttpJson => JSON_OR_A2A,
        };
        let answer = self.open(outgoing, outgoing.verb.clone(), accept).await?;
        let result = self.result(&collected(answer).await?)?;
        Ok(result.map(|result| self.without_credentials(result)))
    }

    /// SECURITY: an agent may echo what it was shown; the caller must not see that.
    fn without_credentials(&self, mut value: Value) -> Value {
        hide(&mut value, self.credentials.secrets());
        value
    }

    /// Sends a request whose answer is a stream.
    ///
    /// # Errors
    /// When there is no answer, or it is something else.
    pub(crate) async fn stream(
        &self,
        outgoing: &Outgoing,
        limits: SseLimits,
    ) -> Result<EventStream, AgentError> {
        let mut answer = self.open(outgoing, outgoing.verb.clone(), EVENTS).await?;
        let elsewhere = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
        // The text of A2A and its protocol buffers disagree about how to subscribe.
        if outgoing.body.is_none()
            && outgoing.verb == Method::POST
            && elsewhere.contains(&answer.status())
        {
            answer = self.open(outgoing, Method::GET, EVENTS).await?;
        }
        if answer.status() == StatusCode::OK && answer.is_type(EVENTS) {
            let failed = |error| AgentError::unanswered("the agent", &error);
            let max = self.transport.config().limits.stream.saturating_mul(2);
            let events = answer.events(limits).map_err(failed)?;
            return Ok(events.of_at_most(max));
        }
        // An error that came before the first event.
        self.result(&collected(answer).await?)?;
        Err(AgentError::Protocol(format!("expected `{EVENTS}`, found another content type")))
    }

    async fn open(
        &self,
        outgoing: &Outgoing,
        verb: Method,
        accept: &'static str,
    ) -> Result<ResponseStream, AgentError> {
        let body = outgoing.body.as_ref().map(Value::to_string);
        let call = Call {
            verb,
            url: &outgoing.url,
            body: body.as_deref().map(str::as_bytes),
            accept,
            version: self.interface.dialect.version(),
        };
        self.transport.open(&call, self.credentials).await
    }

    /// What one event of a stream holds.
    ///
    /// # Errors
    /// When it is an error, or no JSON.
    pub(crate) fn event(&self, event: &Event) -> Result<Value, AgentError> {
        let value = parsed(event.data.as_bytes(), "an event")?;
        let result = match self.interface.binding {
            Binding::JsonRpc => self.envelope(value)?,
            Binding::HttpJson => match value.get("error") {
                Some(error) if event.event.as_deref() == Some("error") || !error.is_null() => {
                    return Err(self.remote(None, error));
                }
                _ => Some(value),
            },
        };
        if event.event.as_deref() == Some("error") {
            return Err(AgentError::Protocol(
                "expected the words of an error, found none".to_owned(),
            ));
        }
        let result = result.map(|result| self.without_credentials(result));
        result.ok_or_else(|| {
            AgentError::Protocol("expected a result in an event, found none".to_owned())
        })
    }

    fn result(&self, answer: &Response) -> Result<Option<Value>, AgentError> {
        let status = answer.status.as_u16();
        match self.interface.binding {
            Binding::JsonRpc if answer.status.is_success() => {
                self.envelope(parsed(&answer.body, "the answer")?)
            }
            Binding::HttpJson if answer.status.is_success() => {
                if answer.body.trim_ascii().is_empty() {
                    return Ok(None);
                }
                parsed(&answer.body, "the answer").map(Some)
            }
            _ => {
                let value = strict::from_slice::<Value>(&answer.body).unwrap_or_default();
                match (value.get("error"), value.get("message")) {
                    (Some(error @ Value::Object(_)), _) => Err(self.remote(Some(status), error)),
                    // As 0.3 has it over HTTP+JSON.
                    (None, Some(Value::String(_))) => Err(self.remote(Some(status), &value)),
                    _ => Err(self.transport.refused("the agent", answer, self.credentials)),
                }
            }
        }
    }

    /// What is in a JSON-RPC envelope.
    fn envelope(&self, value: Value) -> Result<Option<Value>, AgentError> {
        let wrong = |problem: &str| Err(AgentError::Protocol(problem.to_owned()));
        let Value::Object(mut envelope) = value else {
            return wrong("expected a JSON-RPC answer, found something else");
        };
        if envelope.get("jsonrpc") != Some(&json!("2.0")) {
            return wrong("expected `jsonrpc` 2.0 in the answer, found another");
        }
        let error = envelope.remove("error").filter(|error| !error.is_null());
        let names_ours = envelope.get("id").is_some_and(|id| *id == json!(self.id));
        // An agent that could not read a request cannot name it either.
        let names_none = envelope.get("id").is_none_or(Value::is_null);
        let answers = names_ours || (names_none && error.is_some());
        if !answers {
            return wrong("expected an answer to the request that was sent, found another's id");
        }
        match error {
            Some(error) => Err(self.remote(None, &error)),
            None => Ok(envelope.remove("result")),
        }
    }

    /// An error of the agent's own, of either binding.
    fn remote(&self, status: Option<u16>, error: &Value) -> AgentError {
        let code = error.get("code").and_then(Value::as_i64);
        let said = error.get("message").and_then(Value::as_str).unwrap_or("it does not say why");
        let details = error.get("data").or_else(|| error.get("details"));
        let mut details = details.and_then(Value::as_array).into_iter().flatten();
        let reason = details.find_map(|detail| detail.get("reason")?.as_str());
        let mut told = String::new();
        if let Some(status) = status {
            told.push_str(&format!("HTTP {status}: "));
        }
        if let Some(code) = code.filter(|code| status.map(i64::from) != Some(*code)) {
            told.push_str(&format!("{code}: "));
        }
        if let Some(reason) = reason {
            told.push_str(&format!("{}: ", self.transport.words(reason, self.credentials)));
        }
        told.push_str(&self.transport.words(said, self.credentials));
        // A reason or a code says that the interface is there and it is something else that is not.
        let explains = reason.is_some() || code.is_some_and(|code| code < 0);
        let status = if explains { status.filter(|it| *it != 404) } else { status };
        AgentError::RemoteRequestFailed {
            status,
            code,
            detail: format!("the agent answered {told}"),
        }
    }
}

async fn collected(answer: ResponseStream) -> Result<Response, AgentError> {
    answer.collect().await.map_err(|error| AgentError::unanswered("the agent", &error))
}

fn parsed(text: &[u8], what: &str) -> Result<Value, AgentError> {
    // SECURITY: the error could repeat names of members, and with them what we have sent.
    let wrong = |_| AgentError::Protocol(format!("{what} cannot be read as strict JSON"));
    strict::from_slice(text).map_err(wrong)
}
