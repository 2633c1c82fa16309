//! The tools behind the agent.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chio_core::manifest::{MANIFEST_SCHEMA, ToolDefinition, ToolManifest};
use chio_testkit::kernel::{
    CallContext, KernelError, Permit, ToolInvocation, ToolOutput, ToolServerConnection,
};
use chio_testkit::key;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// What a tool was called with, and what it was told about the message.
pub(crate) type Seen = (Value, Option<Value>);

/// What the tools tell, and how they are told.
#[derive(Clone)]
pub(crate) struct Told {
    runs: Arc<AtomicUsize>,
    /// Holds the tool `gate` back.
    pub(crate) gate: Arc<Semaphore>,
    seen: Arc<Mutex<Vec<Seen>>>,
    manifests: Arc<Mutex<HashMap<String, Arc<ToolManifest>>>>,
}

impl Default for Told {
    fn default() -> Self {
        Self {
            runs: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
            seen: Arc::default(),
            manifests: Arc::default(),
        }
    }
}

impl Told {
    /// How often any tool ran.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// What the last tool was called with.
    pub(crate) fn last(&self) -> Seen {
        self.seen.lock().unwrap().last().cloned().unwrap()
    }

    /// A server offers these tools from now on.
    pub(crate) fn offer(&self, server: &str, tools: &[&str]) {
        let manifest = ToolManifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            server_id: server.to_owned(),
            name: "Test tools".to_owned(),
            description: None,
            version: "1.0.0".to_owned(),
            tools: tools.iter().map(|name| definition(name)).collect(),
            server_tools: Vec::new(),
            required_permissions: None,
            public_key: key(5).public_key().clone(),
        };
        self.manifests.lock().unwrap().insert(server.to_owned(), Arc::new(manifest));
    }
}

fn definition(name: &str) -> ToolDefinition {
    let schema = match name {
        "approved" => json!({"x-chio-approval-required": true}),
        "hidden" => json!({"x-chio-publish": false}),
        "streams" => json!({"x-chio-streaming": true}),
        "cancels" => json!({"x-chio-cancellation": true}),
        "parts" => json!({"x-chio-partial-output": true}),
        "lookup" => json!({"properties": {"query": {"type": "string"}}, "required": ["query"]}),
        "names" => json!({"properties": {"messageId": {}, "contextId": {}, "taskId": {}}}),
        "files" => json!({"properties": {"parts": {}, "message": {}}}),
        _ => json!({"type": "object"}),
    };
    ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}"),
        input_schema: schema.as_object().unwrap().clone(),
        output_schema: None,
        pricing: None,
        has_side_effects: name == "writes",
        latency_hint: None,
    }
}

/// A tool server.
pub(crate) struct Tools {
    server: &'static str,
    told: Told,
}

impl Tools {
    pub(crate) const fn new(server: &'static str, told: Told) -> Self {
        Self { server, told }
    }
}

#[async_trait]
impl ToolServerConnection for Tools {
    fn manifest(&self) -> Arc<ToolManifest> {
        Arc::clone(&self.told.manifests.lock().unwrap()[self.server])
    }

    async fn invoke(
        &self,
        _permit: Permit,
        invocation: ToolInvocation,
        call_context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError> {
        self.told.runs.fetch_add(1, Ordering::SeqCst);
        let seen = (invocation.arguments.clone(), invocation.context.clone());
        self.told.seen.lock().unwrap().push(seen);
        match &*invocation.tool_name {
            "gate" => self.told.gate.acquire().await.unwrap().forget(),
            "fail" => return Err(KernelError::ToolServerError("no such row".to_owned())),
            "stream" => {
                for chunk in [json!("one"), json!({"two": 2})] {
                    let _ = call_context.chunk(chunk).await;
                }
                return Ok(ToolOutput { value: None, cost: None });
            }
            _ => {}
        }
        let said = invocation.arguments.get("message").cloned().unwrap_or_default();
        let context = invocation.context.unwrap_or_default();
        let message = context["messageId"].as_str().unwrap_or_default();
        Ok(ToolOutput::value(match &*invocation.tool_name {
            "error" => json!({"content": [text("it broke")], "isError": true}),
            "kit" => kit(message, &said),
            "lookup" | "names" | "files" => invocation.arguments,
            _ => json!(format!("echo: {}", said.as_str().unwrap_or_default())),
        }))
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// What the test kit of A2A wants of an agent, by the names of its messages.
fn kit(message: &str, said: &Value) -> Value {
    let file = |blob: &str| {
        let resource = json!({"uri": "file:///output.txt", "mimeType": "text/plain", "blob": blob});
        json!({"type": "resource", "resource": resource})
    };
    let link = json!({
        "type": "resource_link", "uri": "https://example.com/output.txt", "name": "output.txt",
        "mimeType": "text/plain",
    });
    let reply = |reply: &str| json!({"chio": {"a2a": {"reply": reply}}});
    // Names that begin others come after them.
    let table = [
        ("tck-artifact-file-url", json!({"content": [link]})),
        ("tck-artifact-file", json!({"content": [file("R2VuZXJhdGVk")]})),
        ("tck-artifact-text", json!({"content": [text("Generated text content")]})),
        (
            "tck-artifact-data",
            json!({"content": [], "structuredContent": {"key": "value", "count": 42}}),
        ),
        (
            "tck-message-response",
            json!({"content": [text("Direct message response")], "_meta": reply("message")}),
        ),
        (
            "tck-input-required",
            json!({"content": [text("Which one?")], "_meta": reply("input_required")}),
        ),
    ];
    let found = table.into_iter().find(|(name, _)| message.starts_with(name));
    found.map_or_else(|| json!({"content": [text(&format!("said {said}"))]}), |(_, value)| value)
}
