//! Two tool servers whose tools do what their arguments say: one speaks Chio's own protocol, one
//! says that it speaks MCP and has resources and prompts.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::capability::CapabilityToken;
use chio_core::manifest::{
    MANIFEST_SCHEMA, PricingModel, ToolDefinition, ToolManifest, ToolPricing,
};
use chio_core::money::MonetaryAmount;
use chio_core::receipt::OperationKind;
use chio_cross_protocol::DiscoveryProtocol;
use chio_kernel::{
    CallContext, ClientNotification, KernelError, ListKind, Offer, Permit, Question, Reading,
    ResourceProvider, Session, SessionContext, ToolInvocation, ToolOutput, ToolServerConnection,
};
use chio_testkit::key;
use serde_json::{Value, json};

/// The server that speaks Chio's own protocol.
pub(crate) const NATIVE: &str = "srv";
/// The server that says that it speaks MCP.
pub(crate) const MCP: &str = "mcp-srv";

/// A tool server.
pub(crate) struct TestServer {
    manifest: Arc<ToolManifest>,
    protocol: DiscoveryProtocol,
}

impl TestServer {
    pub(crate) fn new(server_id: &str, protocol: DiscoveryProtocol) -> Self {
        let object = || json!({"type": "object"});
        let addressed = |to: &str| json!({"type": "object", "x-chio-target-protocol": to});
        let tools = vec![
            tool("echo", false, object()),
            tool("effect", true, object()),
            tool("stream", false, object()),
            tool("fail", false, object()),
            tool("hang", true, object()),
            tool("ask", false, object()),
            tool("onward", false, object()),
            ToolDefinition { pricing: Some(flat_price()), ..tool("paid", false, object()) },
            tool("approved", true, json!({"x-chio-approval-required": true})),
            tool("as_http", false, addressed("http")),
            tool("as_mcp", false, addressed("mcp")),
            tool("as_a2a", false, addressed("a2a")),
            tool("as_acp", false, addressed("acp")),
            tool("as_open_ai", false, addressed("openai")),
            tool("fail_as_mcp", false, addressed("mcp")),
            tool("stream_as_a2a", false, addressed("a2a")),
        ];
        let manifest = ToolManifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            server_id: server_id.to_owned(),
            name: "Test tools".to_owned(),
            description: None,
            version: "1.0.0".to_owned(),
            tools,
            server_tools: Vec::new(),
            required_permissions: None,
            public_key: key(5).public_key().clone(),
        };
        Self { manifest: Arc::new(manifest), protocol }
    }
}

fn tool(name: &str, has_side_effects: bool, schema: Value) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "A test tool".to_owned(),
        input_schema: serde_json::from_value(schema).unwrap(),
        output_schema: None,
        pricing: None,
        has_side_effects,
        latency_hint: None,
    }
}

fn flat_price() -> ToolPricing {
    ToolPricing {
        pricing_model: PricingModel::Flat,
        base_price: Some(MonetaryAmount::new(25, "USD")),
        unit_price: None,
        billing_unit: Some("call".to_owned()),
    }
}

/// Asks the caller what the arguments say.
async fn ask(arguments: Value, context: &CallContext<'_>) -> Value {
    let kind = serde_json::from_value(arguments["kind"].clone()).unwrap();
    match context.ask(Question { kind, params: arguments }).await {
        Ok(answer) => json!({"answer": answer}),
        Err(error) => json!({"no_answer": error.to_string()}),
    }
}

/// What the call would take along to another organisation.
fn onward(arguments: &Value, context: &CallContext<'_>) -> Value {
    let presents: CapabilityToken = serde_json::from_value(arguments["presents"].clone()).unwrap();
    let onward = context.onward(DiscoveryProtocol::A2a, Some(&presents)).unwrap();
    json!({
        "capabilityRef": onward.capability_ref,
        "callChain": onward.call_chain,
        "continuation": onward.continuation,
    })
}

#[async_trait]
impl ToolServerConnection for TestServer {
    fn manifest(&self) -> Arc<ToolManifest> {
        Arc::clone(&self.manifest)
    }

    fn protocol(&self) -> DiscoveryProtocol {
        self.protocol
    }

    async fn invoke(
        &self,
        _permit: Permit,
        invocation: ToolInvocation,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError> {
        let arguments = invocation.arguments;
        match &*invocation.tool_name {
            "stream" | "stream_as_a2a" => {
                for chunk in arguments["chunks"].as_array().unwrap() {
                    if context.chunk(chunk.clone()).await.is_err() {
                        break;
                    }
                }
                Ok(ToolOutput::stream_end())
            }
            "fail" | "fail_as_mcp" => Err(KernelError::ToolServerError("no such row".to_owned())),
            "hang" => {
                // The caller cancels as soon as the tool runs, and the tool never ends.
                context.cancellation().cancel();
                std::future::pending().await
            }
            "ask" => Ok(ToolOutput::value(ask(arguments, context).await)),
            "onward" => Ok(ToolOutput::value(onward(&arguments, context))),
            _ => Ok(ToolOutput::value(arguments)),
        }
    }

    fn resources(&self) -> Option<&dyn ResourceProvider> {
        (self.protocol == DiscoveryProtocol::Mcp).then_some(self)
    }
}

#[async_trait]
impl ResourceProvider for TestServer {
    async fn open(&self, _context: SessionContext) -> Result<Offer, KernelError> {
        Ok(Offer::default())
    }

    async fn close(&self, _session_id: &str) {}

    async fn list(
        &self,
        _session: &Session,
        _kind: ListKind,
    ) -> Result<Arc<Vec<Value>>, KernelError> {
        Ok(Arc::default())
    }

    async fn read(
        &self,
        _permit: Permit,
        reading: Reading,
        context: &CallContext<'_>,
    ) -> Result<Value, KernelError> {
        match reading.params.get("uri").and_then(Value::as_str).unwrap_or_default() {
            "test://missing" => {
                let message = "not found".to_owned();
                Err(KernelError::Answered { code: -32002, message, data: None })
            }
            "test://broken" => Err(KernelError::ToolServerError("no disk".to_owned())),
            "test://asks" => {
                let question = Question { kind: OperationKind::ListRoots, params: json!({}) };
                Ok(json!({"answer": context.ask(question).await.unwrap()}))
            }
            uri => Ok(json!({"contents": [{"uri": uri, "text": "hello"}]})),
        }
    }

    async fn tell(
        &self,
        _session: &Session,
        _notification: ClientNotification,
    ) -> Result<(), KernelError> {
        Ok(())
    }
}
