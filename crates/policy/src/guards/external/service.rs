//! One external service: what is sent to it, and what its answers mean.

use std::time::Duration;

use chio_kernel::{GuardInput, Verdict};
use chio_net::client::{HttpClient, Request};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::pattern::ToolPatterns;

/// How much of an answer is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024;
/// How much of a reason is kept, in characters.
const MAX_REASON: usize = 200;

/// Something about a call that may be sent to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub(super) enum Part {
    Tool,
    Server,
    Args,
    ArgsHash,
    Agent,
    Session,
    Capability,
    Protocol,
    Model,
    Cost,
    Time,
    Request,
}

/// What is sent to a service by default: nothing that an argument contains.
pub(super) const DEFAULT_PARTS: [Part; 6] =
    [Part::Tool, Part::Server, Part::ArgsHash, Part::Agent, Part::Session, Part::Protocol];

/// A service that is asked about calls.
pub(super) struct Service {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) timeout: Duration,
    pub(super) send: Vec<Part>,
    /// Headers with secrets for values. They are never shown.
    pub(super) headers: Vec<(String, String)>,
    /// The tools that it is asked about; all where it says none.
    pub(super) on: ToolPatterns,
    pub(super) client: HttpClient,
}

#[derive(Deserialize)]
struct Answer {
    verdict: Word,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Allow,
    Deny,
    Ask,
}

impl Service {
    /// Whether it is asked about a call.
    pub(super) fn concerns(&self, input: &GuardInput<'_>) -> bool {
        self.on.covers(input)
    }

    /// The service's verdict. Whatever is no answer denies.
    pub(super) async fn ask(&self, input: &GuardInput<'_>) -> Verdict {
        let answer = match self.answer(input).await {
            Ok(answer) => answer,
            Err(why) => {
                return Verdict::Deny(format!("service `{}` gives no answer: {why}", self.name));
            }
        };
        let reason = answer.reason.map(|reason| shortened(&reason)).filter(|it| !it.is_empty());
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        match answer.verdict {
            Word::Allow => Verdict::Allow,
            Word::Deny => Verdict::Deny(format!("service `{}` denies{reason}", self.name)),
            Word::Ask => Verdict::AwaitApproval(format!("service `{}` asks{reason}", self.name)),
        }
    }

    async fn answer(&self, input: &GuardInput<'_>) -> Result<Answer, String> {
        let body = self.told(input)?;
        let mut request = Request::post_json(self.url.clone(), body.to_string())
            .within(self.timeout)
            .with_max_body(MAX_ANSWER)
            .without_redirects();
        for (name, value) in &self.headers {
            request = request.with_header(name, value).map_err(|error| error.to_string())?;
        }
        let response = self.client.send(request).await.map_err(|error| error.to_string())?;
        if response.status.as_u16() != 200 {
            return Err(format!("expected status 200, found {}", response.status.as_u16()));
        }
        // What came is not repeated: it may be anything.
        serde_json::from_slice(&response.body).map_err(|_| {
            "expected `{\"verdict\": \"allow|deny|ask\"}`, found something else".to_owned()
        })
    }

    /// The body of the request about a call.
    pub(super) fn told(&self, input: &GuardInput<'_>) -> Result<Value, String> {
        let mut told = Map::new();
        told.insert("schema".to_owned(), json!("chio.external-guard.v1"));
        told.insert("guard".to_owned(), json!(self.name));
        for part in &self.send {
            let value = match part {
                Part::Tool => json!(input.tool_name),
                Part::Server => json!(input.server_id),
                Part::Args => input.arguments.clone(),
                Part::ArgsHash => {
                    let hash = chio_core::canonical::hash(input.arguments);
                    json!(hash.map_err(|error| error.to_string())?)
                }
                Part::Agent => json!(input.token.subject),
                Part::Session => json!(input.session.id),
                Part::Capability => json!(input.token.id),
                Part::Protocol => json!(input.session.protocol.name()),
                Part::Model => json!(input.model),
                Part::Cost => json!(input.cost),
                Part::Time => json!(input.now),
                Part::Request => json!(input.request_id),
            };
            told.insert(part.into_str().to_owned(), value);
        }
        Ok(Value::Object(told))
    }
}

/// A service's reason as a receipt may store it.
fn shortened(reason: &str) -> String {
    let plain = reason.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(MAX_REASON).collect::<String>().trim().to_owned()
}
