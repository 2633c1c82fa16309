//! Tools that do what their names say.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use chio_core::frame::MAX_PAYLOAD;
use chio_core::manifest::{MANIFEST_SCHEMA, ToolManifest};
use chio_testkit::kernel::{
    CallContext, KernelError, Permit, ToolInvocation, ToolOutput, ToolServerConnection,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::subject;

/// The tools `echo`, `wait`, which has side effects, `park`, which needs an approval and then
/// waits, `count`, and `large` and `burst`, whose output fits no frame.
#[derive(Clone)]
pub(crate) struct Tools {
    manifest: Arc<ToolManifest>,
    gate: Arc<Semaphore>,
    runs: Arc<AtomicUsize>,
    chunks: Arc<AtomicUsize>,
}

impl Tools {
    pub(super) fn new() -> Self {
        let tool = |name| {
            json!({
                "name": name, "description": "A test tool", "has_side_effects": name == "wait",
                "input_schema": {"x-chio-approval-required": name == "park"},
            })
        };
        let tools = ["echo", "wait", "park", "count", "large", "burst"].map(tool);
        let manifest = json!({
            "schema": MANIFEST_SCHEMA, "server_id": "srv", "name": "Test tools", "version": "1",
            "tools": tools, "public_key": subject(5),
        });
        let manifest = Arc::new(serde_json::from_value(manifest).unwrap());
        let gate = Arc::new(Semaphore::new(0));
        Self { manifest, gate, runs: Arc::default(), chunks: Arc::default() }
    }

    /// Lets this many calls of `wait` and `park` end.
    pub(crate) fn release(&self, calls: usize) {
        self.gate.add_permits(calls);
    }

    /// How often any tool ran.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// How many chunks any caller took.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.load(Ordering::SeqCst)
    }

    async fn stream(&self, context: &CallContext<'_>, count: u64, padding: &str) -> ToolOutput {
        for index in 0..count {
            if context.chunk(json!({"n": index, "padding": padding})).await.is_err() {
                break;
            }
            self.chunks.fetch_add(1, Ordering::SeqCst);
        }
        ToolOutput::stream_end()
    }
}

#[async_trait]
impl ToolServerConnection for Tools {
    fn manifest(&self) -> Arc<ToolManifest> {
        Arc::clone(&self.manifest)
    }

    async fn invoke(
        &self,
        _permit: Permit,
        invocation: ToolInvocation,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError> {
        let arguments = invocation.arguments;
        self.runs.fetch_add(1, Ordering::SeqCst);
        Ok(match invocation.tool_name.as_str() {
            "wait" | "park" => {
                self.gate.acquire().await.unwrap().forget();
                ToolOutput::value(arguments)
            }
            "count" => self.stream(context, arguments.as_u64().unwrap(), "").await,
            "burst" => self.stream(context, 1, &"x".repeat(MAX_PAYLOAD)).await,
            "large" => ToolOutput::value(Value::String("x".repeat(MAX_PAYLOAD))),
            _ => ToolOutput::value(arguments),
        })
    }
}
