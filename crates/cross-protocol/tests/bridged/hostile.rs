//! What a caller sends who has no token, or a lawful one and bad intentions: the log stays small
//! and readable.

use chio_core::capability::{CapabilityToken, ChioScope, Operation, ToolGrant, Validity};
use chio_core::governance::GovernedTransactionIntent;
use chio_core::signed::Signed;
use chio_cross_protocol::{
    CrossProtocolOrchestrator, DiscoveryProtocol, OrchestratedRequest, Outcome,
};
use chio_kernel::audit::{AuditTrust, audit};
use serde_json::{Value, json};

use crate::{AGENT, ELSEWHERE, World, continued, key};

/// The most that a receipt of a caller without a token may weigh.
const SMALL: usize = 16 << 10;

/// A token of an issuer that the kernel does not trust.
fn forged(world: &World, grants: Vec<ToolGrant>, id: &str) -> CapabilityToken {
    let scope = ChioScope { grants, ..ChioScope::default() };
    let now = world.kernel.clock().unix_seconds();
    let validity = Validity { issued_at: now - 1, expires_at: now + 60 };
    let (issuer, subject) = (key(99), key(AGENT).public_key().clone());
    let token = CapabilityToken::draft(id, issuer.public_key().clone(), subject, scope, validity);
    token.signed(&issuer).unwrap()
}

fn anything() -> ToolGrant {
    ToolGrant::new("*", "*", &[Operation::Invoke])
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

fn intent(change: impl FnOnce(&mut GovernedTransactionIntent)) -> Box<GovernedTransactionIntent> {
    let mut intent = GovernedTransactionIntent::new("i", "srv", "plain", "why");
    change(&mut intent);
    Box::new(intent)
}

#[tokio::test]
async fn whatever_comes_with_a_forged_token_leaves_a_small_receipt() {
    let world = World::new().await;
    let orchestrator = CrossProtocolOrchestrator::new(&world.kernel);
    let plain = |token| OrchestratedRequest::new("r", token, "srv", "plain", json!({}));
    let preferred = json!({"chioControlPlane": {"preferredTargetProtocol": "x".repeat(1 << 20)}});
    let requests = [
        OrchestratedRequest {
            server_id: "s".repeat(64 << 10),
            ..plain(forged(&world, vec![anything(); 2000], "c"))
        },
        plain(forged(&world, vec![], &"i".repeat(1 << 20))),
        plain(forged(&world, vec![anything(); 200_000], "c")),
        plain(forged(&world, vec![anything(); 250], "c")),
        OrchestratedRequest {
            governed_intent: Some(intent(|intent| intent.context = Some(preferred))),
            ..plain(forged(&world, vec![], "c"))
        },
        OrchestratedRequest {
            governed_intent: Some(intent(|intent| intent.id = "i".repeat(1 << 20))),
            ..plain(forged(&world, vec![], "c"))
        },
        OrchestratedRequest { arguments: nested(95), ..plain(forged(&world, vec![], "c")) },
        OrchestratedRequest {
            protocol_context: Some(json!("x".repeat(1 << 20))),
            ..plain(forged(&world, vec![], "c"))
        },
    ];
    for (number, request) in requests.into_iter().enumerate() {
        let (call, _) = world.run(&orchestrator, request, DiscoveryProtocol::A2a).await;
        assert!(matches!(call.evaluation.outcome, Outcome::Denied(_)));
        let signed = call.evaluation.receipt.bytes.len();
        assert!(signed < SMALL, "{number}: {signed}");
    }
    assert_clean(&world).await;
}

#[tokio::test]
async fn a_lawful_token_does_not_make_receipts_that_nobody_can_carry() {
    let world = World::new().await;
    let orchestrator = CrossProtocolOrchestrator::new(&world.kernel);
    let many = vec![ToolGrant::new("srv", "plain", &[Operation::Invoke]); 100_000];
    let requests = [
        OrchestratedRequest {
            governed_intent: Some(intent(|intent| intent.id = "i".repeat(1 << 20))),
            ..world.request("r", "plain")
        },
        OrchestratedRequest {
            scope: Some(ChioScope { grants: many, ..ChioScope::default() }),
            ..world.request("r", "plain")
        },
        OrchestratedRequest { arguments: nested(65), ..world.request("r", "plain") },
        OrchestratedRequest { arguments: nested(95), ..world.request("r", "plain") },
    ];
    for (number, request) in requests.into_iter().enumerate() {
        let (call, _) = world.run(&orchestrator, request, DiscoveryProtocol::A2a).await;
        assert!(matches!(call.evaluation.outcome, Outcome::Denied(_)), "{number}");
        assert!(call.evaluation.receipt.bytes.len() < SMALL, "{number}");
    }
    let deep = OrchestratedRequest { arguments: nested(64), ..world.request("r", "plain") };
    let (call, _) = world.run(&orchestrator, deep, DiscoveryProtocol::A2a).await;
    assert!(matches!(call.evaluation.outcome, Outcome::Value(_)));
    assert_clean(&world).await;
}

#[tokio::test]
async fn a_continuation_that_has_expired_or_comes_with_a_forged_token_joins_no_trace() {
    let world = World::new().await;
    let orchestrator = CrossProtocolOrchestrator::new(&world.kernel);
    let now = world.kernel.clock().unix_seconds();
    let with = |intent, token: Option<CapabilityToken>| {
        let mut request = world.request("r", "plain");
        request.governed_intent = Some(Box::new(intent));
        if let Some(token) = token {
            request.token = token.into();
        }
        request
    };
    for request in [
        with(continued(ELSEWHERE, now - 100_000), None),
        with(continued(ELSEWHERE, now), Some(forged(&world, vec![anything()], "c"))),
    ] {
        let (call, _) = world.run(&orchestrator, request, DiscoveryProtocol::Native).await;
        assert!(matches!(call.evaluation.outcome, Outcome::Denied(_)));
        assert_ne!(call.trace_id, "trace-elsewhere");
    }
    assert!(world.in_trace("trace-elsewhere").await.is_empty());
}

/// Everything in the log can be read again.
async fn assert_clean(world: &World) {
    let authority = world.authority.public_key().clone();
    let trust = AuditTrust { authorities: vec![authority], kernels: Vec::new() };
    let report = audit(&*world.store.shared(), &trust, |_| {}).await.unwrap();
    for log in &report.logs {
        let unreadable = log.problems.iter().any(|it| it.to_string().contains("not a receipt"));
        assert!(!unreadable, "{:?}", log.problems);
    }
}
