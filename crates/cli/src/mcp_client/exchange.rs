//! Messages of one session: JSON-RPC in requests, answers as JSON or as a stream of events.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use chio_net::address::{AddressPattern, AddressRules};
use chio_net::client::{ClientOptions, EventStream, HttpClient, Limits, Request, ResponseStream};
use chio_net::sse::SseLimits;
use serde_json::{Value, json};

use super::{Notice, Place};
use crate::endpoint_file::ReadFile;
use crate::outcome::{Outcome, Refused};
use crate::reasons::readable;

/// How long a call may take: approvals and tools take their time.
const LONG: Duration = Duration::from_secs(3600);
/// How long a connection may take.
const SOON: Duration = Duration::from_secs(10);
/// The largest answer, in bytes.
const MAX_ANSWER: usize = 64 << 20;
/// How often in a row a stream may end without having said anything.
const MOST_IDLE_RETURNS: usize = 5;
/// How long at most to wait before a stream is taken up again.
const LONGEST_PAUSE: u64 = 5000;
/// How much of a server's complaint is repeated.
const MAX_COMPLAINT: usize = 300;

/// What to do when the process is gone that said where it is.
const START: &str = "; start it with `chio up` or `chio serve`";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";

/// Messages of one session.
pub(super) struct Exchange {
    http: HttpClient,
    url: String,
    bearer: Option<String>,
    /// What the process says that is spoken to; none for an endpoint that was named.
    said: Option<Arc<ReadFile>>,
    session: Option<String>,
    pub(super) version: Option<String>,
    last_id: u64,
}

impl Exchange {
    pub(super) fn new(place: &Place) -> Result<Self> {
        let rules = AddressRules::public_only().with_loopback();
        // An operator who names a host wants to reach it, also in a network of their own.
        let host = rules.judge(&place.url).ok().map(|to| to.host());
        let named = host.and_then(|host| host.parse::<AddressPattern>().ok());
        let rules = match named {
            Some(pattern) => rules.allow(pattern),
            None => rules,
        };
        let limits = Limits {
            connect: SOON,
            total: LONG,
            idle: LONG,
            max_body: MAX_ANSWER,
            ..Limits::default()
        };
        let http = HttpClient::new(ClientOptions { rules, limits, ..ClientOptions::default() })?;
        let (url, bearer, said) = (place.url.clone(), place.bearer.clone(), place.said.clone());
        Ok(Self { http, url, bearer, said, session: None, version: None, last_id: 0 })
    }

    /// A request with the headers of the session.
    fn dressed(&self, request: Request) -> Result<Request> {
        // SECURITY: another process may listen by now where the one that said so has listened.
        if let Some(said) = self.said.as_ref().filter(|said| !said.is_held()) {
            let process = said.content.process;
            return Err(self.unreachable(&format_args!("process {process} has ended")));
        }
        let mut request = request
            .without_redirects()
            .with_header("accept", &format!("application/json, {EVENTS}"))?;
        if let Some(bearer) = &self.bearer {
            request = request.with_bearer(bearer)?;
        }
        for (name, value) in [(SESSION, &self.session), ("mcp-protocol-version", &self.version)] {
            if let Some(value) = value {
                request = request.with_header(name, value)?;
            }
        }
        Ok(request)
    }

    async fn post(&self, message: &Value) -> Result<ResponseStream> {
        let request = Request::post_json(self.url.clone(), serde_json::to_vec(message)?);
        self.http.open(self.dressed(request)?).await.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &dyn Display) -> anyhow::Error {
        let way_out = if self.said.is_some() { START } else { "" };
        anyhow!("no server answers at {}: {error}{way_out}", self.url)
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn request(
        &mut self,
        method: &str,
        params: Value,
        told: &mut dyn FnMut(Notice),
    ) -> Result<Value> {
        self.last_id += 1;
        let id = json!(self.last_id);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answer = self.post(&message).await?;
        if let Some(session) = answer.headers().get(SESSION) {
            let session = session.to_str().context("expected a session's name, found other bytes");
            self.session = Some(session?.to_owned());
        }
        let message = if answer.is_type(EVENTS) && answer.status().is_success() {
            self.answer_in(answer, &id, told).await?
        } else {
            whole(answer).await?
        };
        result(message)
    }

    /// As [`Self::request`], until the operator interrupts it: then the server is told that the answer
    /// is not wanted any more.
    pub(super) async fn request_or_cancel(
        &mut self,
        method: &str,
        params: Value,
        told: &mut dyn FnMut(Notice),
    ) -> Result<Value> {
        let id = self.last_id + 1;
        tokio::select! {
            answer = self.request(method, params, told) => return answer,
            interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot listen for signals")?,
        }
        let params = json!({"requestId": id, "reason": "interrupted by the operator"});
        let method = "notifications/cancelled";
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await?;
        let message = "cancelled: the server was told; `chio receipt list` shows what became of it";
        Err(Refused::ended(message, Outcome::Cancelled).into())
    }

    /// Sends what has no answer.
    pub(super) async fn notify(&self, method: &str) -> Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "method": method})).await
    }

    async fn say(&self, message: &Value) -> Result<()> {
        let answer = self.post(message).await?;
        if answer.status().is_success() {
            return Ok(());
        }
        result(whole(answer).await?).map(drop)
    }

    /// Waits for an answer in a stream, and in those that go on after it.
    async fn answer_in(
        &self,
        stream: ResponseStream,
        id: &Value,
        told: &mut dyn FnMut(Notice),
    ) -> Result<Value> {
        let limits = SseLimits { max_line: MAX_ANSWER, max_event: MAX_ANSWER };
        let mut events = stream.events(limits)?;
        let (mut last_id, mut idle) = (None, 0);
        loop {
            let answer = self.read(&mut events, id, told).await;
            let went_on =
                events.last_id().map(str::to_owned).filter(|it| Some(it) != last_id.as_ref());
            idle = if went_on.is_some() { 0 } else { idle + 1 };
            last_id = went_on.or(last_id);
            match answer {
                Ok(Some(answer)) => return Ok(answer),
                // A stream that ended or broke is taken up again where it was left.
                Ok(None) | Err(_) if idle < MOST_IDLE_RETURNS && last_id.is_some() => {}
                Ok(None) => bail!("the answer of {} broke off", self.url),
                Err(error) => return Err(error),
            }
            let pause = events.last_retry().unwrap_or_default().min(LONGEST_PAUSE);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let again = Request::get(self.url.clone());
            let again = self
                .dressed(again)?
                .with_header("last-event-id", last_id.as_deref().unwrap_or_default())?;
            let stream = self.http.open(again).await.map_err(|error| self.unreachable(&error))?;
            if !stream.status().is_success() {
                return whole(stream).await;
            }
            events = stream.events(limits)?;
        }
    }

    /// Reads events up to the answer with this id, or to the end of the stream.
    async fn read(
        &self,
        events: &mut EventStream,
        id: &Value,
        told: &mut dyn FnMut(Notice),
    ) -> Result<Option<Value>> {
        while let Some(event) = events.next().await? {
            if event.data.is_empty() {
                continue;
            }
            let mut message: Value =
                serde_json::from_str(&event.data).context("expected JSON in an event")?;
            match (message.get("method").and_then(Value::as_str), message.get("id")) {
                (None, Some(found)) if found == id => return Ok(Some(message)),
                (Some(_), Some(question)) => self.decline(question).await?,
                (Some(method), None) => {
                    let method = method.to_owned();
                    let params = message.get_mut("params").map(Value::take).unwrap_or_default();
                    told(Notice { method, params });
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// We said that we answer no questions; a server that asks is told again.
    async fn decline(&self, question: &Value) -> Result<()> {
        let error = json!({"code": -32601, "message": "this client answers no questions"});
        self.say(&json!({"jsonrpc": "2.0", "id": question, "error": error})).await
    }

    /// Ends the session.
    pub(super) async fn end(self) -> Result<()> {
        if self.session.is_some() {
            let request = Request::new(http::Method::DELETE, self.url.clone());
            self.http.send(self.dressed(request)?.within(SOON)).await?;
        }
        Ok(())
    }
}

/// The one message of an answer that is no stream.
async fn whole(answer: ResponseStream) -> Result<Value> {
    let answer = answer.collect().await?;
    let (status, body) = (answer.status, answer.body);
    if status == http::StatusCode::UNAUTHORIZED {
        let message = "the server asks for another token: pass its file with --bearer-file";
        return Err(Refused::new(message).into());
    }
    if let Ok(message) = serde_json::from_slice::<Value>(&body)
        && message.get("jsonrpc").is_some()
    {
        return Ok(message);
    }
    let said: String = String::from_utf8_lossy(&body).chars().take(MAX_COMPLAINT).collect();
    bail!("expected an answer in JSON-RPC, found HTTP {} {}", status.as_u16(), said.trim())
}

/// The result of a message, or its error.
fn result(mut message: Value) -> Result<Value> {
    if let Some(result) = message.get_mut("result") {
        return Ok(result.take());
    }
    let error = message.get("error").unwrap_or(&Value::Null);
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    let said = error.get("message").and_then(Value::as_str).unwrap_or("no reason was given");
    let receipt = error.pointer("/data/chio/receiptId").and_then(Value::as_str);
    let receipt = receipt.map_or_else(String::new, |id| format!(" (receipt {id})"));
    let ended = match Outcome::of_answer(error.pointer("/data/chio"), false) {
        Outcome::Well => Outcome::Invalid,
        ended => ended,
    };
    let said = readable(said);
    Err(Refused::ended(format!("the server answers {code}: {said}{receipt}"), ended).into())
}
