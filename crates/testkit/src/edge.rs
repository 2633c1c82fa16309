//! A small edge of its own protocol, over HTTP and over lines: `SERVER TOOL ARGUMENTS` is a call, the
//! answer is the result as JSON. It shows all that the runtime asks of an edge; a protocol with
//! cancellation, chunks or questions implements `Caller` where this has [`NoCaller`].

use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::post;
use chio_core::capability::DpopProof;
use chio_cross_protocol::{DiscoveryProtocol, NoCaller, OrchestratedRequest, Outcome, Principal};
use chio_edge::auth::{Bearer, HttpAuth};
use chio_edge::body::collect;
use chio_edge::limits::RateLimiter;
use chio_edge::tokens::token_for;
use chio_edge::{
    Carrier, Edge, EdgeContext, EdgeKind, Form, Refusal, Setting, SettingError, StreamError,
    Streams,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

/// The entry in the list of edges.
pub const EDGE: EdgeKind = EdgeKind {
    name: "words",
    announcement: "words on ",
    path: "/words",
    address_hint: "",
    carriers: &[Carrier::Http, Carrier::Stdio],
    admits_ended: false,
    // A name that nothing configures by itself: no other test serves it.
    default_listener: "words",
    asks_users: false,
    settings: &[Setting::new(
        "greeting",
        Form::Text,
        "none",
        "the first line of every connection over streams",
    )],
    check: |settings, _| match settings.text("greeting") {
        Some("") => {
            let message = "expected a text that is not empty".to_owned();
            Err(SettingError { key: Some("greeting"), message })
        }
        _ => Ok(()),
    },
    start: |context, settings| {
        let greeting = settings.text("greeting").map(str::to_owned);
        Ok(Arc::new(WordsEdge { context: Arc::new(context), greeting }))
    },
};

struct WordsEdge {
    context: Arc<EdgeContext>,
    greeting: Option<String>,
}

/// What an HTTP request is answered with.
#[derive(Clone)]
struct Endpoint {
    context: Arc<EdgeContext>,
    auth: Arc<HttpAuth>,
    limiter: Arc<RateLimiter>,
}

#[async_trait]
impl Edge for WordsEdge {
    fn routes(&self, auth: Arc<HttpAuth>) -> Option<Router> {
        let (context, limiter) = (Arc::clone(&self.context), Arc::default());
        let endpoint = Endpoint { context, auth, limiter };
        Some(Router::new().route(EDGE.path, post(handle)).with_state(endpoint))
    }

    async fn serve_streams(
        &self,
        streams: Streams,
        shutdown: CancellationToken,
    ) -> Result<(), StreamError> {
        let Streams { reader, mut writer, principal, place: _place } = streams;
        if let Some(greeting) = &self.greeting {
            writer.write_all(format!("{greeting}\n").as_bytes()).await?;
        }
        let mut lines = BufReader::new(reader).lines();
        loop {
            let line = tokio::select! {
                line = lines.next_line() => line?,
                () = shutdown.cancelled() => None,
            };
            let Some(line) = line else { return Ok(()) };
            let answer = call(&self.context, principal.clone(), None, &line).await;
            writer.write_all(format!("{answer}\n").as_bytes()).await?;
        }
    }
}

async fn handle(State(endpoint): State<Endpoint>, request: Request) -> (StatusCode, String) {
    match answer(&endpoint, request).await {
        Ok(answer) => (StatusCode::OK, answer.to_string()),
        Err(refusal) => (refusal.status, refusal.message),
    }
}

async fn answer(endpoint: &Endpoint, request: Request) -> Result<Value, Refusal> {
    let Endpoint { context, auth, limiter } = endpoint;
    let (head, body) = request.into_parts();
    let now = || context.orchestrator.now();
    let head = auth.authenticate(&head, Bearer::Token, limiter, now).await?;
    let body = collect(body, 1 << 20).await?;
    let line = String::from_utf8_lossy(body.text());
    Ok(call(context, head.principal?, head.proof?, &line).await)
}

/// Runs one call: admitted, through the orchestrator, answered with its receipt's id.
async fn call(
    context: &EdgeContext,
    principal: Principal,
    proof: Option<Box<DpopProof>>,
    line: &str,
) -> Value {
    let mut words = line.splitn(3, ' ');
    let (server, tool) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let arguments = serde_json::from_str(words.next().unwrap_or("{}"));
    let Ok(arguments) = arguments else { return json!({"error": "expected JSON"}) };
    let session = match context.admission.admit(DiscoveryProtocol::Http, principal).await {
        Ok(session) => session,
        Err(refused) => return json!({"error": refused.to_string()}),
    };
    let tokens = context.admission.tokens(&session.principal).await.unwrap_or_default();
    let Some(token) = token_for(&tokens, server, tool).cloned() else {
        return json!({"error": "no capability"});
    };
    let mut request = OrchestratedRequest::new("words-1", token, server, tool, arguments);
    request.dpop_proof = proof;
    match context.orchestrator.run(request, Arc::new(NoCaller::new(session))).await {
        Ok(ran) => match ran.evaluation.outcome {
            Outcome::Value(value) => json!({"value": value, "receipt": ran.evaluation.receipt.id}),
            outcome => json!({"outcome": format!("{outcome:?}")}),
        },
        Err(_) => json!({"error": "no receipt could be made durable"}),
    }
}
