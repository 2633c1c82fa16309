//! The fixed calls: one of each kind whose receipt differs from the others'.

use chio_core::canonical;
use chio_core::capability::{
    CapabilityToken, ChioScope, DpopProof, DpopTarget, Operation, PromptGrant, ResourceGrant,
    ToolGrant, Validity,
};
use chio_core::crypto::{Keypair, Signature};
use chio_core::governance::{
    ApprovalDecision, ApprovalToken, CallChainContext, ContinuationToken,
    GovernedTransactionIntent, ModelMetadata,
};
use chio_core::money::MonetaryAmount;
use chio_core::registry::ErrorCode;
use chio_core::signed::Signed;
use chio_cross_protocol::{
    CrossProtocolCapabilityRef, Denial, DiscoveryProtocol, OrchestratedRequest, Parent, ReadKind,
    ReadRequest,
};
use chio_testkit::{key, token};
use serde_json::{Value, json};

use crate::server::{MCP, NATIVE};

/// The second at which everything happens.
pub(crate) const NOW: u64 = 1_700_000_000;
/// The token that has been revoked.
pub(crate) const REVOKED: &str = "cap-revoked";
/// An hour from [`NOW`].
const HOUR: Validity = Validity { issued_at: NOW, expires_at: NOW + 3600 };

/// The issuer that the kernel trusts.
pub(crate) fn issuer() -> Keypair {
    key(1)
}

/// The caller of every call that does not say otherwise.
fn agent() -> Keypair {
    key(2)
}

/// The approver that the kernel trusts.
pub(crate) fn approver() -> Keypair {
    key(8)
}

/// A kernel elsewhere that the kernel trusts.
pub(crate) fn elsewhere() -> Keypair {
    key(6)
}

/// What is asked of the orchestrator.
pub(crate) enum Action {
    Call(Box<OrchestratedRequest>),
    Read(Box<ReadRequest>),
}

/// A call, and how its caller behaves.
pub(crate) struct FixedCall {
    pub(crate) name: &'static str,
    pub(crate) action: Action,
    /// How many chunks the caller takes before it is gone.
    pub(crate) takes: usize,
    /// What the caller answers to questions; none when it takes none.
    pub(crate) answer: Option<Value>,
}

impl FixedCall {
    fn new(name: &'static str, action: Action) -> Self {
        Self { name, action, takes: usize::MAX, answer: None }
    }
}

fn grant(tool: &str) -> ToolGrant {
    ToolGrant::new("*", tool, &[Operation::Invoke, Operation::Delegate])
}

/// A token of the agent's.
fn cap_of(id: &str, grants: Vec<ToolGrant>) -> CapabilityToken {
    token::token_at(&issuer(), agent().public_key(), id, grants, HOUR)
}

/// The agent's token for every tool.
fn cap() -> CapabilityToken {
    cap_of("cap-1", vec![grant("*")])
}

fn request(tool: &str, arguments: Value) -> OrchestratedRequest {
    OrchestratedRequest::new(format!("origin-{tool}"), cap(), NATIVE, tool, arguments)
}

/// A call of the agent's with its token for every tool.
fn plain(name: &'static str, tool: &str, arguments: Value) -> FixedCall {
    changed(name, tool, arguments, |_| {})
}

/// The same with a change.
fn changed(
    name: &'static str,
    tool: &str,
    arguments: Value,
    change: impl FnOnce(&mut OrchestratedRequest),
) -> FixedCall {
    let mut request = request(tool, arguments);
    change(&mut request);
    FixedCall::new(name, Action::Call(Box::new(request)))
}

/// A call with this token.
fn with(name: &'static str, token: CapabilityToken, tool: &str, arguments: Value) -> FixedCall {
    let request =
        OrchestratedRequest::new(format!("origin-{tool}"), token, NATIVE, tool, arguments);
    FixedCall::new(name, Action::Call(Box::new(request)))
}

/// The fixed calls of a protocol, in the order in which they run.
pub(crate) fn all(source: DiscoveryProtocol) -> Vec<FixedCall> {
    let mut calls = endings();
    // Protocols that no edge speaks yet differ from the others in their routes only.
    if matches!(
        source,
        DiscoveryProtocol::Http | DiscoveryProtocol::Acp | DiscoveryProtocol::OpenAi
    ) {
        return calls;
    }
    calls.extend(outputs());
    calls.extend(authority());
    calls.extend(budgets());
    calls.extend(governed());
    calls.extend(routes(source));
    calls.extend(reads());
    calls
}

/// Every way in which a call ends.
fn endings() -> Vec<FixedCall> {
    let chunks = json!({"chunks": [{"n": 1}, "two", [3.5]]});
    let question = json!({"kind": "create_message", "prompt": "which colour?"});
    vec![
        plain("a value", "echo", json!({"text": "hello \u{e9}\u{1f600}", "n": 1, "f": 1.5e300})),
        plain("a value of a tool with side effects", "effect", json!({"n": -1})),
        plain("a stream", "stream", chunks.clone()),
        FixedCall { takes: 1, ..plain("a caller that is gone after one chunk", "stream", chunks) },
        plain("a tool that fails", "fail", json!({})),
        plain("a cancelled call", "hang", json!({"n": 1})),
        with(
            "a denial by the capability",
            cap_of("cap-2", vec![grant("echo")]),
            "effect",
            json!(1),
        ),
        plain("a denial by a guard", "echo", json!({"deny": "not today"})),
        FixedCall {
            answer: Some(json!({"text": "blue"})),
            ..plain("a question that is answered", "ask", question.clone())
        },
        plain("a question that the caller does not take", "ask", question),
    ]
}

/// What guards do to arguments and output.
fn outputs() -> Vec<FixedCall> {
    vec![
        plain("a guard that breaks", "echo", json!({"deny": "error"})),
        plain("a secret that the receipt does not keep", "echo", json!({"secret": "s3cret"})),
        plain("output that a guard notes", "echo", json!({"review": "note"})),
        plain("output that a guard replaces", "echo", json!({"review": "replace"})),
        plain("output that a guard blocks", "effect", json!({"review": "block"})),
        plain("a stream that a guard cuts", "stream", json!({"chunks": [1, {"review": "block"}]})),
        plain("an empty stream", "stream", json!({"chunks": []})),
    ]
}

/// Whose authority a call is made with, and whether it holds.
fn authority() -> Vec<FixedCall> {
    let old = Validity { issued_at: NOW - 20, expires_at: NOW };
    let old = token::token_at(&issuer(), agent().public_key(), "cap-old", vec![grant("*")], old);
    let foreign = token::token_at(&key(9), agent().public_key(), "cap-x", vec![grant("*")], HOUR);
    let revoked = cap_of(REVOKED, vec![grant("*")]);
    let handed_on = token::child(&issuer(), &cap(), &agent(), key(3).public_key(), "cap-child");
    let proven = ToolGrant { dpop_required: Some(true), ..grant("*") };
    let proven = cap_of("cap-dpop", vec![proven]);
    let arguments = json!({"n": 1});
    let target = DpopTarget {
        token: &proven,
        tool_server: NATIVE,
        tool_name: "effect",
        arguments: &arguments,
    };
    let proof = DpopProof::new(&target, "nonce-1", NOW, &agent()).unwrap();
    let mut with_proof =
        OrchestratedRequest::new("origin-dpop", proven.clone(), NATIVE, "effect", arguments);
    with_proof.dpop_proof = Some(Box::new(proof));
    let with_proof = || Action::Call(Box::new(with_proof.clone()));
    vec![
        with("a token that has expired", old, "echo", json!({})),
        with("a token of an issuer that is not trusted", foreign, "echo", json!({})),
        with("a token that was revoked", revoked, "echo", json!({})),
        with("a delegated token", handed_on, "effect", json!({"n": 1})),
        changed("a token of another subject", "echo", json!({}), |it| {
            it.agent = key(3).public_key().clone();
        }),
        with("a proof of possession that is missing", proven, "effect", json!({"n": 1})),
        FixedCall::new("a proof of possession", with_proof()),
        FixedCall::new("a proof of possession that was used before", with_proof()),
    ]
}

/// Calls that cost something, or are counted.
fn budgets() -> Vec<FixedCall> {
    let counted = ToolGrant { max_invocations: Some(1), ..grant("echo") };
    let counted = cap_of("cap-counted", vec![counted]);
    let total = Some(MonetaryAmount::new(40, "USD"));
    let priced = ToolGrant { max_total_cost: total, ..grant("paid") };
    let priced = cap_of("cap-priced", vec![priced]);
    vec![
        with("the last call of a budget", counted.clone(), "echo", json!({})),
        with("a call beyond the budget", counted, "echo", json!({})),
        with("a call that costs money", priced.clone(), "paid", json!({})),
        with("a call that costs more than is left", priced, "paid", json!({})),
    ]
}

fn intent(tool: &str, arguments: &Value) -> GovernedTransactionIntent {
    let hash = canonical::hash(arguments).unwrap();
    let mut intent = GovernedTransactionIntent::new("intent-1", NATIVE, tool, "to see");
    intent.context = Some(json!({"parameterHash": hash}));
    intent.max_amount = Some(MonetaryAmount::new(5, "USD"));
    intent
}

/// The approver's statement on a call of the tool `approved`.
fn approval(decision: ApprovalDecision, arguments: &Value) -> ApprovalToken {
    let token = ApprovalToken {
        id: format!("answer-{}", json!(decision).as_str().unwrap()),
        approver: approver().public_key().clone(),
        subject: agent().public_key().clone(),
        governed_intent_hash: intent("approved", arguments).hash().unwrap(),
        request_id: "origin-approved".to_owned(),
        threshold_proposal_hash: None,
        issued_at: NOW,
        expires_at: NOW + 600,
        decision,
        algorithm: None,
        signature: Signature::blank(),
    };
    token.signed(&approver()).unwrap()
}

/// A call that continues another elsewhere, with the word of this kernel.
fn continuation(signer: &Keypair) -> GovernedTransactionIntent {
    let context = CallChainContext {
        chain_id: "trace-elsewhere".to_owned(),
        parent_request_id: "req-elsewhere".to_owned(),
        parent_receipt_id: None,
        origin_subject: "origin".to_owned(),
        delegator_subject: "delegator".to_owned(),
    };
    let token = ContinuationToken {
        schema: ContinuationToken::SCHEMA.to_owned(),
        token_id: "cont-1".to_owned(),
        signer: signer.public_key().clone(),
        subject: agent().public_key().clone(),
        context: context.clone(),
        parent_receipt_hash: None,
        parent_session_anchor: None,
        current_subject: agent().public_key().to_hex(),
        parent_capability_id: None,
        delegation_link_hash: None,
        governed_intent_hash: None,
        audience: None,
        nonce: None,
        issued_at: NOW,
        expires_at: NOW + 60,
        signature: Signature::blank(),
    };
    let mut intent = GovernedTransactionIntent::new("intent-2", NATIVE, "effect", "to go on");
    intent.call_chain = Some(context);
    intent.context = Some(json!({"callChainContinuation": token.signed(signer).unwrap()}));
    intent
}

/// What a caller intends, approvals, and where a call comes from.
fn governed() -> Vec<FixedCall> {
    let arguments = json!({"n": 1});
    let intended = |name, tool: &str, intent| {
        changed(name, tool, json!({"n": 1}), |it| it.governed_intent = Some(Box::new(intent)))
    };
    let answered = |name, decision| {
        changed(name, "approved", json!({"n": 1}), |it| {
            it.governed_intent = Some(Box::new(intent("approved", &json!({"n": 1}))));
            it.approval = Some(Box::new(approval(decision, &json!({"n": 1}))));
        })
    };
    let mut asserted = continuation(&elsewhere());
    asserted.context = None;
    let presents = token::token_at(
        &key(9),
        key(7).public_key(),
        "cap-elsewhere",
        vec![ToolGrant::new("there", "echo", &[Operation::Invoke])],
        HOUR,
    );
    vec![
        intended("a governed intent", "effect", intent("effect", &arguments)),
        intended("a governed intent for another tool", "effect", intent("echo", &arguments)),
        intended("a call chain that is asserted", "effect", asserted),
        intended("a continuation by a trusted kernel", "effect", continuation(&elsewhere())),
        intended("a continuation by a stranger", "effect", continuation(&key(9))),
        plain("what a call takes along", "onward", json!({"presents": presents})),
        plain("an approval that is missing", "approved", json!({"n": 1})),
        answered("an approval that says no", ApprovalDecision::Denied),
        answered("an approval", ApprovalDecision::Approved),
        answered("an approval that was used before", ApprovalDecision::Approved),
        changed("the model that asks", "echo", json!({}), |it| {
            let model = json!({"model_id": "m-1", "safety_tier": "high", "provider": "p"});
            let model: ModelMetadata = serde_json::from_value(model).unwrap();
            it.model = Some(Box::new(model));
        }),
    ]
}

/// A tool's answer in the form of MCP. Its members are in alphabetical order, because some answers
/// have it as text, and the order of that text would depend on features of `serde_json`.
fn mcp_result(is_error: bool) -> Value {
    json!({
        "content": [{"text": "hi", "type": "text"}, {"data": "AA==", "mimeType": "image/png", "type": "image"}],
        "isError": is_error,
        "structuredContent": {"n": 1},
    })
}

/// Where a call goes, and what it says about itself.
fn routes(source: DiscoveryProtocol) -> Vec<FixedCall> {
    let wide = ChioScope { grants: vec![grant("echo")], ..ChioScope::default() };
    let narrow = vec![ToolGrant::new(NATIVE, "echo", &[Operation::Invoke])];
    let narrow = ChioScope { grants: narrow, ..ChioScope::default() };
    let parent = Parent { request_id: "req-parent".to_owned(), trace_id: "trace-1".to_owned() };
    let reference = |id: &str| {
        let token = cap_of(id, vec![grant("*")]).into();
        let context = Some(json!({"skill": "echo"}));
        CrossProtocolCapabilityRef::to_token(&token, source, context).unwrap()
    };
    let refusal = Denial::by_kernel(ErrorCode::InvalidRequestShape, "the edge said no");
    vec![
        plain("a tool addressed as http, which is switched off", "as_http", json!({"n": 1})),
        plain("a tool addressed as mcp", "as_mcp", mcp_result(false)),
        plain("an error in the form of mcp", "as_mcp", mcp_result(true)),
        plain("a tool addressed as mcp that fails", "fail_as_mcp", json!({})),
        plain("a tool addressed as a2a", "as_a2a", json!({"text": "hi"})),
        plain("an answer in the form of mcp to a2a", "as_a2a", mcp_result(false)),
        plain("a stream addressed as a2a", "stream_as_a2a", json!({"chunks": ["a", {"b": 1}]})),
        plain("a tool addressed as acp", "as_acp", json!({"n": 1})),
        plain("a tool addressed as openai", "as_open_ai", mcp_result(false)),
        plain("a denial addressed as openai", "as_open_ai", json!({"deny": "not today"})),
        changed("a server that speaks mcp", "echo", mcp_result(false), |it| {
            it.server_id = MCP.to_owned();
        }),
        changed("a server that is not there", "echo", json!({}), |it| {
            it.server_id = "nowhere".to_owned();
        }),
        plain("a tool that is not there", "nothing", json!({})),
        changed("a scope that is wider than the token's", "echo", json!({}), |it| {
            it.token = cap_of("cap-narrow", narrow.grants.clone()).into();
            it.scope = Some(wide);
        }),
        changed("a scope that is narrower", "echo", json!({}), |it| {
            it.scope = Some(narrow.clone())
        }),
        changed("a call made for another", "echo", json!({}), |it| it.parent = Some(parent)),
        changed("a capability reference", "echo", json!({}), |it| {
            it.capability_ref = Some(reference("cap-1"));
            it.protocol_context = Some(json!({"skill": "echo", "message": "m-1"}));
        }),
        changed("a capability reference to another token", "echo", json!({}), |it| {
            it.capability_ref = Some(reference("cap-2"));
        }),
        changed("a name that is none", "echo", json!({}), |it| {
            it.origin_request_id = " blank".to_owned();
        }),
        changed("a refusal by the edge", "echo", json!({}), |it| it.refusal = Some(refusal)),
    ]
}

/// The agent's token for resources and prompts.
fn reader() -> CapabilityToken {
    let operations = vec![Operation::Read, Operation::Subscribe];
    let scope = ChioScope {
        grants: vec![ToolGrant::new(MCP, "*", &[Operation::Invoke])],
        resource_grants: vec![ResourceGrant { uri_pattern: "test://*".to_owned(), operations }],
        prompt_grants: vec![PromptGrant {
            prompt_name: "greet*".to_owned(),
            operations: vec![Operation::Get],
        }],
    };
    let (issuer_key, subject) = (issuer().public_key().clone(), agent().public_key().clone());
    let draft = CapabilityToken::draft("cap-read", issuer_key, subject, scope, HOUR);
    draft.signed(&issuer()).unwrap()
}

fn read(name: &'static str, kind: ReadKind, params: Value) -> FixedCall {
    let request = ReadRequest {
        kind,
        token: reader().into(),
        agent: agent().public_key().clone(),
        server_id: MCP.to_owned(),
        params: serde_json::from_value(params).unwrap(),
        meta: None,
    };
    FixedCall::new(name, Action::Read(Box::new(request)))
}

/// What is read of a server besides calling its tools.
fn reads() -> Vec<FixedCall> {
    let uri = |uri: &str| json!({"uri": uri});
    let prompt = |name: &str| json!({"name": name, "arguments": {"who": "you"}});
    vec![
        read("a resource", ReadKind::Resource, uri("test://a")),
        read("a resource that is not granted", ReadKind::Resource, uri("other://a")),
        read("a resource that is not there", ReadKind::Resource, uri("test://missing")),
        read("a resource that fails", ReadKind::Resource, uri("test://broken")),
        FixedCall {
            answer: Some(json!({"roots": []})),
            ..read("a resource whose server asks", ReadKind::Resource, uri("test://asks"))
        },
        read("a subscription", ReadKind::Subscribe, uri("test://a")),
        read("a prompt", ReadKind::Prompt, prompt("greeting")),
        read("a prompt that is not granted", ReadKind::Prompt, prompt("farewell")),
    ]
}
