//! Calls that cross protocols, on a real kernel: one evaluation, one signed receipt that tells it
//! all.
#![expect(clippy::unwrap_used, reason = "a test")]

mod hostile;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chio_core::capability::{CapabilityToken, ChioScope, Operation, ToolGrant, Validity};
use chio_core::crypto::{Keypair, Signature};
use chio_core::governance::{CallChainContext, ContinuationToken, GovernedTransactionIntent};
use chio_core::manifest::{ToolDefinition, ToolManifest};
use chio_core::receipt::{ChioReceipt, Decision};
use chio_core::signed::Signed;
use chio_cross_protocol::{
    CrossProtocolOrchestrator, CrossProtocolTargetRequest, DiscoveryProtocol, Evaluation, NoCaller,
    OrchestratedRequest, OrchestratedToolCall, Outcome, Parent, RouteAvailabilityStatus, Session,
    TargetProtocolExecutor, TargetProtocolRegistry,
};
use chio_kernel::store::ReceiptQuery;
use chio_kernel::{
    CallContext, ChioKernel, Clock, KernelConfig, KernelError, KernelParts, Permit, Pipeline,
    SystemClock, SystemRandomness, ToolInvocation, ToolOutput, ToolServerConnection,
};
use chio_store::{OpenStore, StoreUrl};
use serde_json::{Value, json};

/// A server that speaks MCP, says so, and counts its runs.
struct Server {
    manifest: Arc<ToolManifest>,
    runs: Arc<AtomicUsize>,
}

impl Server {
    fn new(kernel: &ChioKernel, runs: &Arc<AtomicUsize>) -> Self {
        let tool = |name: &str, schema: Value| ToolDefinition {
            name: name.to_owned(),
            description: "answers".to_owned(),
            input_schema: schema.as_object().unwrap().clone(),
            output_schema: None,
            pricing: None,
            has_side_effects: false,
            latency_hint: None,
        };
        let manifest = ToolManifest {
            schema: chio_core::manifest::MANIFEST_SCHEMA.to_owned(),
            server_id: "srv".to_owned(),
            name: "srv".to_owned(),
            description: None,
            version: "1".to_owned(),
            tools: vec![
                tool("plain", json!({"type": "object"})),
                tool("projected", json!({"type": "object", "x-chio-target-protocol": "openai"})),
            ],
            server_tools: Vec::new(),
            required_permissions: None,
            public_key: kernel.public_key().clone(),
        };
        Self { manifest: Arc::new(manifest), runs: Arc::clone(runs) }
    }
}

#[async_trait]
impl ToolServerConnection for Server {
    fn manifest(&self) -> Arc<ToolManifest> {
        Arc::clone(&self.manifest)
    }

    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::Mcp
    }

    async fn invoke(
        &self,
        _permit: Permit,
        invocation: ToolInvocation,
        _context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        Ok(ToolOutput::value(json!({"trace": invocation.trace_id})))
    }
}

/// An executor for a protocol that keeps what it is given.
#[derive(Debug, Clone)]
struct Recording {
    protocol: DiscoveryProtocol,
    given: Arc<Mutex<Vec<Value>>>,
}

impl Recording {
    fn new(protocol: DiscoveryProtocol) -> Self {
        Self { protocol, given: Arc::default() }
    }

    fn given(&self) -> Vec<Value> {
        self.given.lock().unwrap().clone()
    }
}

impl TargetProtocolExecutor for Recording {
    fn protocol(&self) -> DiscoveryProtocol {
        self.protocol
    }

    fn project(&self, request: &CrossProtocolTargetRequest<'_>, evaluation: &Evaluation) -> Value {
        let CrossProtocolTargetRequest {
            origin_request_id,
            kernel_request_id,
            server_id,
            tool_name,
            target,
            chunks,
        } = request;
        let given = json!({
            "origin": origin_request_id, "kernel": kernel_request_id, "server": server_id,
            "tool": tool_name, "target": target, "chunks": chunks,
            "receipt": evaluation.receipt.id,
        });
        self.given.lock().unwrap().push(given);
        json!({"by": self.protocol})
    }
}

struct World {
    kernel: ChioKernel,
    store: OpenStore,
    runs: Arc<AtomicUsize>,
    authority: Keypair,
}

fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}

const AGENT: u8 = 7;
const ELSEWHERE: u8 = 8;

impl World {
    async fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let store = OpenStore::open(&StoreUrl::Memory, Arc::clone(&clock)).await.unwrap();
        let slot = store.take_slot(None).await.unwrap();
        let authority = store.authority().await.unwrap().unwrap();
        let config = KernelConfig {
            trusted_issuers: vec![authority.public_key().clone()],
            trusted_kernels: vec![key(ELSEWHERE).public_key().clone()],
            ..KernelConfig::default()
        };
        let parts = KernelParts {
            config,
            key: slot.key,
            ledger: slot.ledger,
            store: store.shared(),
            clock,
            randomness: Arc::<SystemRandomness>::default(),
            pipeline: Pipeline::none(),
        };
        let kernel = ChioKernel::start(parts).await.unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        kernel.register_tool_server(Box::new(Server::new(&kernel, &runs))).unwrap();
        Self { kernel, store, runs, authority }
    }

    fn token(&self, id: &str) -> CapabilityToken {
        let grants = vec![
            ToolGrant::new("srv", "*", &[Operation::Invoke]),
            ToolGrant::new("other", "secret", &[Operation::Invoke]),
        ];
        let scope = ChioScope { grants, ..ChioScope::default() };
        let now = self.kernel.clock().unix_seconds();
        let validity = Validity { issued_at: now - 1, expires_at: now + 60 };
        let (issuer, subject) = (self.authority.public_key(), key(AGENT));
        let subject = subject.public_key().clone();
        let token = CapabilityToken::draft(id, issuer.clone(), subject, scope, validity);
        token.signed(&self.authority).unwrap()
    }

    fn request(&self, id: &str, tool: &str) -> OrchestratedRequest {
        OrchestratedRequest::new(id, self.token("cap-1"), "srv", tool, json!({"q": 1}))
    }

    async fn run(
        &self,
        orchestrator: &CrossProtocolOrchestrator<'_>,
        request: OrchestratedRequest,
        source: DiscoveryProtocol,
    ) -> (OrchestratedToolCall, ChioReceipt) {
        let session = Session::anonymous("s", source);
        let call = orchestrator.run(request, Arc::new(NoCaller::new(session))).await.unwrap();
        let receipt = call.evaluation.receipt.open().unwrap();
        receipt.verify().unwrap();
        (call, receipt)
    }

    async fn in_trace(&self, trace_id: &str) -> Vec<String> {
        let trace_id = Some(trace_id.to_owned());
        let query = ReceiptQuery { trace_id, limit: 100, ..ReceiptQuery::default() };
        let rows = self.store.shared().query(&query).await.unwrap();
        let receipt = |body: &[u8]| serde_json::from_slice::<ChioReceipt>(body).unwrap();
        rows.iter().map(|row| receipt(&row.body).id).collect()
    }
}

fn metadata(receipt: &ChioReceipt) -> &Value {
    receipt.metadata.as_ref().unwrap()
}

// covers: CROSS-001, CROSS-002, CROSS-004, CROSS-010, CROSS-011, CROSS-013, CROSS-036
#[tokio::test]
async fn a_call_from_every_protocol_has_one_evaluation_and_one_receipt_that_tells_its_way() {
    let world = World::new().await;
    let orchestrator = CrossProtocolOrchestrator::new(&world.kernel);
    for (number, source) in DiscoveryProtocol::ALL.into_iter().enumerate() {
        let id = format!("r-{number}");
        let request = world.request(&id, "projected");
        let hash = request.token.hash().unwrap().to_owned();
        let (call, receipt) = world.run(&orchestrator, request, source).await;
        assert_eq!(world.runs.load(Ordering::SeqCst), number + 1);
        assert_eq!(call.target, DiscoveryProtocol::OpenAi, "the tool says so");
        let chio = &metadata(&receipt)["chio"];
        assert_eq!(chio["authorityPath"], "cross_protocol_orchestrator");
        assert_eq!(chio["authoritative"], true);
        let bridge = &chio["bridge"];
        assert_eq!(bridge["bridgeId"], format!("chio-bridge-{source}-open_ai-{id}"));
        assert_eq!(bridge["sourceProtocol"], json!(source));
        let envelope = &bridge["capabilityEnvelope"];
        assert_eq!(envelope["schema"], "chio.cross-protocol-cap.v1");
        assert_eq!(envelope["capabilityRef"]["parentCapabilityHash"], hash);
        let kept = json!({"grants": [
            {"server_id": "srv", "tool_name": "projected", "operations": ["invoke"]},
        ]});
        assert_eq!(envelope["attenuatedScope"], kept);
        let route = &metadata(&receipt)["route_selection"];
        assert_eq!(route["selectedProtocols"], json!([source, "open_ai", "native"]));
        // The shape of OpenAI is only that of the result: the server spoke MCP.
        let hops = bridge["trace"]["hops"].as_array().unwrap().iter();
        let spoken: Vec<&Value> = hops.map(|hop| &hop["protocol"]).collect();
        assert_eq!(spoken, [&json!(source), &json!("mcp"), &json!("native")]);
        assert_eq!(bridge["trace"]["traceId"], call.trace_id);
        assert_eq!(world.in_trace(&call.trace_id).await, std::slice::from_ref(&receipt.id));
        let result = call.protocol_result(&[]).unwrap();
        assert_eq!(result["type"], "function_call_output");
        assert_eq!((&result["call_id"], &result["receipt_ref"]), (&json!(id), &json!(receipt.id)));
    }
}

// covers: CROSS-012
#[tokio::test]
async fn the_executor_of_the_target_is_told_the_call_and_no_other_is_asked() {
    let world = World::new().await;
    let all = DiscoveryProtocol::ALL.map(Recording::new);
    let native = TargetProtocolRegistry::new(DiscoveryProtocol::Native);
    let registry = all.iter().fold(native, |registry, executor| registry.with_executor(executor));
    let orchestrator = CrossProtocolOrchestrator::new(&world.kernel).with_registry(registry);
    for (tool, target) in
        [("projected", DiscoveryProtocol::OpenAi), ("plain", DiscoveryProtocol::Mcp)]
    {
        let request = world.request("my-name", tool);
        let (call, receipt) = world.run(&orchestrator, request, DiscoveryProtocol::A2a).await;
        assert_eq!(call.target, target);
        assert_ne!(call.request_id, "my-name");
        assert_eq!(call.protocol_result(&[json!("c")]), Some(json!({"by": target})));
        let given = json!({
            "origin": "my-name", "kernel": call.request_id, "server": "srv", "tool": tool,
            "target": target, "chunks": ["c"], "receipt": receipt.id,
        });
        for executor in &all {
            let expected = if executor.protocol == target { vec![given.clone()] } else { vec![] };
            assert_eq!(executor.given(), expected, "{}", executor.protocol);
            executor.given.lock().unwrap().clear();
        }
    }
}

// covers: BRIDGE-164, BRIDGE-165, CROSS-038
#[tokio::test]
async fn the_receipt_of_a_bridged_call_is_a_receipt_as_all_are() {
    let world = World::new().await;
    let orchestrator = CrossProtocolOrchestrator::new(&world.kernel);
    let mut members = BTreeSet::new();
    for source in DiscoveryProtocol::ALL {
        let request = world.request("r", "plain");
        let (_, receipt) = world.run(&orchestrator, request, source).await;
        let written = serde_json::to_value(&receipt).unwrap();
        assert_eq!(written["decision"], json!({"verdict": "allow"}));
        assert_eq!(written["capability_id"], "cap-1");
        assert_eq!(written["kernel_key"], world.kernel.public_key().to_hex());
        let signature = written["signature"].as_str().unwrap();
        assert_eq!(signature.len(), 128, "bare hex");
        assert!(signature.bytes().all(|byte| byte.is_ascii_hexdigit()), "{signature}");
        assert_eq!(written["metadata"]["chio"]["authorityPath"], "cross_protocol_orchestrator");
        assert_eq!(written["metadata"]["chio"]["authoritative"], true);
        for absent in ["version", "schema", "receipt_id", "authority_path", "authoritative"] {
            assert_eq!(written.get(absent), None, "{absent}");
        }
        // What holds for one of them is signed: without it, none verifies.
        let mut changed = written.clone();
        changed["metadata"]["chio"]["authoritative"] = json!(false);
        let changed: ChioReceipt = serde_json::from_value(changed).unwrap();
        assert!(changed.verify().is_err(), "{source}");
        let names = written.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        members.insert(names);
    }
    assert_eq!(members.len(), 1, "whichever protocol a call came by: {members:?}");
}

#[tokio::test]
async fn what_the_server_speaks_is_the_target_unless_the_tool_says_otherwise() {
    let world = World::new().await;
    let orchestrator = CrossProtocolOrchestrator::new(&world.kernel);
    let request = world.request("r", "plain");
    let (call, receipt) = world.run(&orchestrator, request, DiscoveryProtocol::A2a).await;
    assert_eq!(call.target, DiscoveryProtocol::Mcp);
    let hops = &metadata(&receipt)["chio"]["bridge"]["trace"]["hops"];
    assert_eq!(hops[1]["requestId"], format!("{}:mcp", call.request_id));
    assert_eq!(hops[2]["requestId"], call.request_id);
    assert!(call.protocol_result(&[]).unwrap()["content"].is_array(), "the shape of MCP");
}

// covers: CROSS-016, CROSS-027, CROSS-047
#[tokio::test]
async fn a_planned_denial_is_signed_with_all_candidates_and_no_executor_is_called() {
    let world = World::new().await;
    let recording = Recording::new(DiscoveryProtocol::OpenAi);
    let registry = TargetProtocolRegistry::new(DiscoveryProtocol::Native).with_executor(&recording);
    let down = RouteAvailabilityStatus::unavailable("maintenance");
    let orchestrator = CrossProtocolOrchestrator::new(&world.kernel)
        .with_registry(registry.clone())
        .with_protocol_availability(DiscoveryProtocol::OpenAi, down);
    let request = world.request("r", "projected");
    let (call, receipt) = world.run(&orchestrator, request, DiscoveryProtocol::A2a).await;
    assert!(matches!(call.evaluation.outcome, Outcome::Denied(_)));
    assert!(matches!(receipt.decision, Some(Decision::Deny { .. })));
    assert_eq!(call.protocol_result(&[]), None);
    assert!(recording.given().is_empty());
    assert_eq!(world.runs.load(Ordering::SeqCst), 0);
    let route = &metadata(&receipt)["route_selection"];
    assert_eq!(route["decision"], "deny");
    assert_eq!(route["candidates"][0]["availabilityReason"], "maintenance");
    // With leave to fall back, the same call runs natively, and nothing is projected.
    let mut request = world.request("r", "projected");
    let mut intent = GovernedTransactionIntent::new("i", "srv", "projected", "why");
    intent.context = Some(json!({"chioControlPlane": {"allowNativeFallback": true}}));
    request.governed_intent = Some(Box::new(intent));
    let (call, receipt) = world.run(&orchestrator, request, DiscoveryProtocol::A2a).await;
    assert_eq!(metadata(&receipt)["route_selection"]["decision"], "attenuate");
    assert_eq!((call.target, call.protocol_result(&[])), (DiscoveryProtocol::Native, None));
    assert_eq!(world.runs.load(Ordering::SeqCst), 1);
    // Where it is available, it is selected.
    let orchestrator = CrossProtocolOrchestrator::new(&world.kernel)
        .with_registry(registry)
        .with_protocol_availability(
            DiscoveryProtocol::OpenAi,
            RouteAvailabilityStatus::available(),
        );
    let request = world.request("r", "projected");
    let (call, receipt) = world.run(&orchestrator, request, DiscoveryProtocol::A2a).await;
    assert_eq!(metadata(&receipt)["route_selection"]["decision"], "select");
    assert_eq!(call.target, DiscoveryProtocol::OpenAi);
}

// covers: CROSS-050, CROSS-052, CROSS-061
#[tokio::test]
async fn an_envelope_that_is_wider_than_the_token_is_a_signed_denial() {
    let world = World::new().await;
    let orchestrator = CrossProtocolOrchestrator::new(&world.kernel);
    let delegate = [Operation::Invoke, Operation::Delegate];
    for (grant, runs) in [
        (ToolGrant::new("*", "*", &[Operation::Invoke]), false),
        (ToolGrant::new("srv", "plain", &delegate), false),
        // Narrow enough, but for another tool.
        (ToolGrant::new("other", "secret", &[Operation::Invoke]), false),
        (ToolGrant::new("srv", "plain", &[Operation::Invoke]), true),
    ] {
        let before = world.runs.load(Ordering::SeqCst);
        let mut request = world.request("r", "plain");
        request.scope = Some(ChioScope { grants: vec![grant.clone()], ..ChioScope::default() });
        let (call, _) = world.run(&orchestrator, request, DiscoveryProtocol::A2a).await;
        let ran = matches!(call.evaluation.outcome, Outcome::Value(_));
        assert_eq!(ran, runs, "{grant:?}");
        assert_eq!(world.runs.load(Ordering::SeqCst) - before, usize::from(runs));
    }
}

// covers: CROSS-048, CROSS-067
#[tokio::test]
async fn calls_made_for_another_join_its_trace_whatever_they_speak() {
    let world = World::new().await;
    let orchestrator = CrossProtocolOrchestrator::new(&world.kernel);
    let request = world.request("root", "plain");
    let (root, receipt) = world.run(&orchestrator, request, DiscoveryProtocol::Mcp).await;
    let Outcome::Value(seen) = &root.evaluation.outcome else { panic!("expected a value") };
    assert_eq!(seen["trace"], root.trace_id, "the tool can pass it on");
    let mut ids = vec![receipt.id];
    for source in [DiscoveryProtocol::A2a, DiscoveryProtocol::Native] {
        let parent =
            Parent { request_id: root.request_id.clone(), trace_id: root.trace_id.clone() };
        let request = OrchestratedRequest { parent: Some(parent), ..world.request("n", "plain") };
        let (nested, receipt) = world.run(&orchestrator, request, source).await;
        assert_eq!(nested.trace_id, root.trace_id);
        let trace = &metadata(&receipt)["chio"]["bridge"]["trace"];
        assert_eq!(trace["parentRequestId"], root.request_id);
        ids.push(receipt.id);
    }
    assert_eq!(world.in_trace(&root.trace_id).await, ids);
    let request = world.request("n", "plain");
    let (other, _) = world.run(&orchestrator, request, DiscoveryProtocol::A2a).await;
    assert_ne!(other.trace_id, root.trace_id);
}

fn continued(signer: u8, now: u64) -> GovernedTransactionIntent {
    let (agent, signer) = (key(AGENT).public_key().clone(), key(signer));
    let context = CallChainContext {
        chain_id: "trace-elsewhere".to_owned(),
        parent_request_id: "req-elsewhere".to_owned(),
        parent_receipt_id: None,
        origin_subject: "o".to_owned(),
        delegator_subject: "d".to_owned(),
    };
    let token = ContinuationToken {
        schema: ContinuationToken::SCHEMA.to_owned(),
        token_id: "cont-1".to_owned(),
        signer: signer.public_key().clone(),
        subject: agent.clone(),
        context: context.clone(),
        parent_receipt_hash: None,
        parent_session_anchor: None,
        current_subject: agent.to_hex(),
        parent_capability_id: None,
        delegation_link_hash: None,
        governed_intent_hash: None,
        audience: None,
        nonce: None,
        issued_at: now - 1,
        expires_at: now + 60,
        signature: Signature::blank(),
    };
    let token = token.signed(&signer).unwrap();
    let mut intent = GovernedTransactionIntent::new("i", "srv", "plain", "why");
    intent.call_chain = Some(context);
    intent.context = Some(json!({"callChainContinuation": token}));
    intent
}

#[tokio::test]
async fn a_continuation_joins_the_trace_of_a_trusted_kernel_and_of_no_other() {
    let world = World::new().await;
    let orchestrator = CrossProtocolOrchestrator::new(&world.kernel);
    let now = world.kernel.clock().unix_seconds();
    let mut request = world.request("r", "plain");
    request.governed_intent = Some(Box::new(continued(ELSEWHERE, now)));
    let (call, receipt) = world.run(&orchestrator, request, DiscoveryProtocol::A2a).await;
    assert!(matches!(call.evaluation.outcome, Outcome::Value(_)), "{:?}", call.evaluation.outcome);
    assert_eq!(call.trace_id, "trace-elsewhere");
    let chain = &metadata(&receipt)["governed_transaction"]["call_chain"];
    assert_eq!(chain["evidenceClass"], "verified");
    assert_eq!(chain["continuationTokenId"], "cont-1");
    // An untrusted kernel's word neither joins nor runs.
    let mut request = world.request("r", "plain");
    request.governed_intent = Some(Box::new(continued(9, now)));
    let (call, _) = world.run(&orchestrator, request, DiscoveryProtocol::A2a).await;
    assert!(matches!(call.evaluation.outcome, Outcome::Denied(_)));
    assert_ne!(call.trace_id, "trace-elsewhere");
    // A bare claim runs in a trace of its own and stays a claim.
    let mut request = world.request("r", "plain");
    let mut intent = continued(9, now);
    intent.context = None;
    request.governed_intent = Some(Box::new(intent));
    let (call, receipt) = world.run(&orchestrator, request, DiscoveryProtocol::A2a).await;
    assert!(matches!(call.evaluation.outcome, Outcome::Value(_)));
    assert_ne!(call.trace_id, "trace-elsewhere");
    let chain = &metadata(&receipt)["governed_transaction"]["call_chain"];
    assert_eq!(chain["evidenceClass"], "asserted");
}
