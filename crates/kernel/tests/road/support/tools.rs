//! A tool server whose tools do what their arguments say.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::capability::CapabilityToken;
use chio_core::manifest::{
    MANIFEST_SCHEMA, PricingModel, ToolDefinition, ToolManifest, ToolPricing,
};
use chio_core::money::MonetaryAmount;
use chio_core::protocol::DiscoveryProtocol;
use chio_core::receipt::OperationKind;
use chio_kernel::{
    CallContext, KernelError, Permit, Question, ToolInvocation, ToolOutput, ToolServerConnection,
};
use chio_testkit::key;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tracing::Instrument as _;

use super::{Journal, SERVER, usd};

/// A tool server whose tools do what their arguments say.
pub(crate) struct TestTools {
    manifest: Arc<ToolManifest>,
    journal: Journal,
    gate: Arc<Semaphore>,
}

impl TestTools {
    /// `gate` holds the tools `gate` and `paid_gate` back.
    pub(crate) fn new(server_id: &str, journal: &Journal, gate: &Arc<Semaphore>) -> Self {
        let flat = Some(price(PricingModel::Flat, Some(usd(10)), None));
        let metered = Some(price(PricingModel::PerUnit, None, Some(usd(1))));
        let per_call = Some(price(PricingModel::PerInvocation, None, Some(usd(4))));
        let tools = vec![
            tool("echo", false, None),
            tool("effect", true, None),
            tool("paid", false, flat.clone()),
            tool("per_call", false, per_call),
            tool("metered", false, metered),
            tool("stream", false, None),
            tool("effect_stream", true, None),
            tool("fail", false, None),
            tool("paid_fail", false, flat.clone()),
            tool("lose", false, None),
            tool("refuse", false, None),
            tool("paid_refuse", true, flat.clone()),
            tool("connect", true, None),
            tool("panic", false, None),
            tool("hang", false, None),
            tool("gate", true, None),
            tool("paid_gate", true, flat),
            tool("ask", false, None),
            tool("big", false, None),
            tool("onward", false, None),
            tool("log", false, None),
            approved("approved"),
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
        Self { manifest: Arc::new(manifest), journal: journal.clone(), gate: Arc::clone(gate) }
    }
}

fn tool(name: &str, has_side_effects: bool, pricing: Option<ToolPricing>) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "A test tool".to_owned(),
        input_schema: Map::new(),
        output_schema: None,
        pricing,
        has_side_effects,
        latency_hint: None,
    }
}

/// A tool that no caller may call without an approval.
fn approved(name: &str) -> ToolDefinition {
    let needs = ("x-chio-approval-required".to_owned(), json!(true));
    ToolDefinition { input_schema: Map::from_iter([needs]), ..tool(name, false, None) }
}

fn price(
    pricing_model: PricingModel,
    base_price: Option<MonetaryAmount>,
    unit_price: Option<MonetaryAmount>,
) -> ToolPricing {
    ToolPricing { pricing_model, base_price, unit_price, billing_unit: Some("call".to_owned()) }
}

/// The arguments of a question of this kind.
fn kind(arguments: &Value) -> OperationKind {
    let kind = arguments.get("kind").cloned().unwrap_or(json!("create_message"));
    serde_json::from_value(kind).unwrap()
}

async fn stream(arguments: &Value, context: &CallContext<'_>) -> ToolOutput {
    let chunks = arguments["chunks"].as_array().cloned().unwrap_or_default();
    for chunk in chunks {
        if context.chunk(chunk).await.is_err() {
            break;
        }
    }
    ToolOutput { value: arguments.get("value").cloned(), cost: None }
}

#[async_trait]
impl ToolServerConnection for TestTools {
    fn manifest(&self) -> Arc<ToolManifest> {
        Arc::clone(&self.manifest)
    }

    async fn invoke(
        &self,
        permit: Permit,
        invocation: ToolInvocation,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError> {
        assert_eq!(permit.request_id(), invocation.request_id, "the permit is for this call");
        let arguments = invocation.arguments;
        self.journal.note(format!("run {}", invocation.tool_name));
        let cost = arguments.get("cost").cloned().map(|it| serde_json::from_value(it).unwrap());
        match invocation.tool_name.as_str() {
            "stream" | "effect_stream" => return Ok(stream(&arguments, context).await),
            "fail" | "paid_fail" => {
                let detail = arguments["detail"].as_str().unwrap_or("no such row").to_owned();
                return Err(KernelError::ToolServerError(detail));
            }
            "lose" => return Err(KernelError::Incomplete("the server ended".to_owned())),
            // A server that cannot be had, and one that is not there yet.
            "refuse" | "paid_refuse" => {
                context.not_sent();
                return Err(KernelError::ToolServerError("no connection".to_owned()));
            }
            "connect" => {
                context.not_sent();
                self.gate.acquire().await.unwrap().forget();
                context.sent();
                self.journal.note("sent");
                std::future::pending().await
            }
            "panic" => panic!("told to"),
            "hang" => std::future::pending().await,
            "gate" | "paid_gate" => self.gate.acquire().await.unwrap().forget(),
            "ask" => {
                let question = Question { kind: kind(&arguments), params: arguments };
                let answer = context.ask(question).await;
                self.journal.note("answered");
                return Ok(ToolOutput::value(match answer {
                    Ok(answer) => json!({"answer": answer}),
                    Err(error) => json!({"no_answer": error.to_string()}),
                }));
            }
            "onward" => {
                let presents = arguments.get("presents").cloned();
                let presents: Option<CapabilityToken> =
                    presents.map(|token| serde_json::from_value(token).unwrap());
                let onward = context.onward(DiscoveryProtocol::A2a, presents.as_ref()).unwrap();
                return Ok(ToolOutput::value(json!({
                    "capabilityRef": onward.capability_ref,
                    "callChain": onward.call_chain,
                    "continuation": onward.continuation,
                    "context": invocation.context,
                })));
            }
            "log" => {
                tracing::info!("before");
                tokio::task::yield_now().await;
                let work = async { tracing::info!("in a task of its own") };
                tokio::spawn(work.in_current_span()).await.unwrap();
            }
            "big" => {
                let size = usize::try_from(arguments["size"].as_u64().unwrap()).unwrap();
                return Ok(ToolOutput::value(Value::String("x".repeat(size))));
            }
            _ => {}
        }
        Ok(ToolOutput { value: Some(arguments), cost })
    }
}

/// The tools under their usual name.
pub(crate) fn usual(journal: &Journal, gate: &Arc<Semaphore>) -> Box<TestTools> {
    Box::new(TestTools::new(SERVER, journal, gate))
}
