//! Tools that break in every way that a tool can.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_core::manifest::{MANIFEST_SCHEMA, ToolDefinition, ToolManifest};
use chio_core::receipt::OperationKind;
use chio_kernel::{
    CallContext, KernelError, Permit, Question, ToolInvocation, ToolOutput, ToolServerConnection,
};
use serde_json::{Map, Value, json};

/// Its name in grants and calls.
const SERVER_ID: &str = "test";

/// Names, and whether they change something.
const TOOLS: [(&str, bool); 8] = [
    // Fails with the text that it is given.
    ("fail", false),
    ("panic", false),
    // Never ends.
    ("hang", false),
    ("hang_with_effects", true),
    // Gives back what it is given.
    ("give", false),
    // `n` chunks of `bytes` characters, `pause_ms` apart; then the value `last`, or fails with
    // the text `fails`.
    ("stream", false),
    // A text of this many bytes.
    ("big", false),
    // Asks the caller something.
    ("ask", false),
];

/// A tool server that runs in the process.
pub(crate) struct TestServer {
    manifest: Arc<ToolManifest>,
}

impl TestServer {
    pub(crate) fn new(public_key: PublicKey) -> Self {
        let tool = |(name, has_side_effects): (&str, bool)| ToolDefinition {
            name: name.to_owned(),
            description: "A tool for tests.".to_owned(),
            input_schema: Map::new(),
            output_schema: None,
            pricing: None,
            has_side_effects,
            latency_hint: None,
        };
        let manifest = ToolManifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            server_id: SERVER_ID.to_owned(),
            name: "Test".to_owned(),
            description: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tools: TOOLS.into_iter().map(tool).collect(),
            server_tools: Vec::new(),
            required_permissions: None,
            public_key,
        };
        Self { manifest: Arc::new(manifest) }
    }
}

fn failure(detail: impl Into<String>) -> KernelError {
    KernelError::ToolServerError(detail.into())
}

fn text(arguments: &Value, name: &str) -> Option<String> {
    arguments.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn number(arguments: &Value, name: &str) -> u64 {
    arguments.get(name).and_then(Value::as_u64).unwrap_or_default()
}

fn letters(count: u64) -> Value {
    Value::from("x".repeat(usize::try_from(count).unwrap_or_default()))
}

async fn stream(arguments: &Value, context: &CallContext<'_>) -> Result<ToolOutput, KernelError> {
    let (bytes, pause) = (number(arguments, "bytes"), number(arguments, "pause_ms"));
    let texts = arguments.get("texts").and_then(Value::as_array).cloned().unwrap_or_default();
    let parts = (0..number(arguments, "n")).map(|_| letters(bytes));
    for part in texts.into_iter().chain(parts) {
        if context.chunk(part).await.is_err() {
            return Err(failure("nobody takes it"));
        }
        if pause > 0 {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
    match (text(arguments, "fails"), arguments.get("last")) {
        (Some(problem), _) => Err(failure(problem)),
        (None, Some(last)) => Ok(ToolOutput::value(last.clone())),
        (None, None) => Ok(ToolOutput::stream_end()),
    }
}

#[async_trait]
impl ToolServerConnection for TestServer {
    fn manifest(&self) -> Arc<ToolManifest> {
        Arc::clone(&self.manifest)
    }

    #[expect(clippy::panic, reason = "to see what a panic comes to")]
    async fn invoke(
        &self,
        _permit: Permit,
        invocation: ToolInvocation,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError> {
        let arguments = invocation.arguments;
        match invocation.tool_name.as_str() {
            "fail" => Err(failure(text(&arguments, "text").unwrap_or_default())),
            "panic" => panic!("as told"),
            "hang" | "hang_with_effects" => std::future::pending().await,
            "give" => Ok(ToolOutput::value(arguments)),
            "stream" => stream(&arguments, context).await,
            "big" => Ok(ToolOutput::value(letters(number(&arguments, "bytes")))),
            "ask" => {
                let kind = OperationKind::CreateElicitation;
                let answer = context.ask(Question { kind, params: json!({}) }).await;
                Ok(ToolOutput::value(json!({"answer": answer.map_err(|it| it.to_string())})))
            }
            _ => Err(failure("there is no tool of this name")),
        }
    }
}
