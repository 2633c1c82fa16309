//! Governed intents: what a caller says it intends, held against the call, the grant and the log.

use chio_core::canonical;
use chio_core::capability::{ApprovalThreshold, CapabilityToken, Constraint, ToolGrant};
use chio_core::governance::{
    Autonomy, Commerce, GovernedTransactionIntent as Intent, MeteredBilling, MeteredQuote,
    RuntimeAttestation, SettlementMode,
};
use chio_core::registry::ErrorCode as Code;
use chio_core::tier::{AutonomyTier, RuntimeAssurance};
use serde_json::{Value, json};

use crate::support::authority::intent;
use crate::support::tokens::{constrained, token};
use crate::support::world::{Ended, assert_denied, assert_denied_by, denial, metadata, value};
use crate::support::{NOW, SERVER, Setup, World, grant, usd};

/// Runs a call with an intent under a token with this grant.
async fn run_on(world: &World, grant: ToolGrant, tool: &str, intent: Option<Intent>) -> Ended {
    let token = token(&format!("cap-{}", world.kernel.new_request_id()), &[grant]);
    let mut call = world.call(&token, tool, json!({"n": 1}));
    call.governed_intent = intent.map(Box::new);
    world.run(call).await
}

async fn run(world: &World, tool: &str, intent: Intent) -> Ended {
    run_on(world, grant("*"), tool, Some(intent)).await
}

fn with_context(context: Value) -> Intent {
    Intent { context: Some(context), ..intent("effect") }
}

fn pays(seller: &str) -> Option<Commerce> {
    let (seller, shared_payment_token_id) = (seller.to_owned(), "spt-1".to_owned());
    Some(Commerce { seller, shared_payment_token_id, settlement_destination_ref: None })
}

fn quoted(settlement_mode: SettlementMode, cost: u64) -> Option<MeteredBilling> {
    let quote = MeteredQuote {
        quote_id: "q-1".to_owned(),
        provider: "p".to_owned(),
        billing_unit: "call".to_owned(),
        quoted_units: 1,
        quoted_cost: usd(cost),
        issued_at: NOW,
        expires_at: None,
    };
    Some(MeteredBilling { settlement_mode, quote, max_billed_units: None, verified_outcome: None })
}

fn attested(tier: RuntimeAssurance) -> Option<RuntimeAttestation> {
    Some(RuntimeAttestation {
        schema: "s".to_owned(),
        verifier: "v".to_owned(),
        tier,
        issued_at: NOW - 10,
        expires_at: NOW + 10,
        evidence_sha256: "00".repeat(32),
        runtime_identity: Some("me".to_owned()),
        workload_identity: None,
        claims: None,
    })
}

fn acts(tier: AutonomyTier) -> Option<Autonomy> {
    Some(Autonomy { tier, delegation_bond_id: None })
}

#[tokio::test]
async fn the_receipt_carries_what_the_caller_intends() {
    let world = World::new().await;
    let plain = intent("effect");
    let ended = run(&world, "effect", plain.clone()).await;
    let block = json!({
        "intent_id": "intent-1",
        "intent_hash": plain.hash().unwrap(),
        "purpose": "to see what happens",
        "server_id": SERVER,
        "tool_name": "effect",
    });
    assert_eq!(metadata(&ended, "governed_transaction"), &block);
    let full = Intent {
        max_amount: Some(usd(5)),
        commerce: pays("shop"),
        metered_billing: quoted(SettlementMode::HoldCapture, 3),
        autonomy: acts(AutonomyTier::Delegated),
        ..plain
    };
    let ended = run(&world, "effect", full.clone()).await;
    assert_eq!(value(&ended), &json!({"n": 1}));
    let block = metadata(&ended, "governed_transaction");
    assert_eq!(block["intent_hash"], json!(full.hash().unwrap()));
    assert_eq!(block["max_amount"], json!({"units": 5, "currency": "USD"}));
    assert_eq!(block["commerce"]["seller"], json!("shop"));
    assert_eq!(block["metered_billing"]["settlementMode"], json!("hold_capture"));
    assert_eq!(block["autonomy"], json!({"tier": "delegated"}));
    let without = run_on(&world, grant("*"), "effect", None).await;
    assert_eq!(metadata(&without, "governed_transaction"), &json!(null));
}

#[tokio::test]
async fn an_intent_for_another_call_is_denied() {
    let world = World::new().await;
    let of = |arguments: Value| json!({"parameterHash": canonical::hash(&arguments).unwrap()});
    let cases = [
        (Intent { server_id: "other".to_owned(), ..intent("effect") }, "an intent for server"),
        (intent("echo"), "expected an intent for tool `effect`, found one for `echo`"),
        (Intent { body: Some(json!({"kind": "x"})), ..intent("effect") }, "another body"),
        (with_context(of(json!({"n": 2}))), "expected an intent for these arguments"),
        (with_context(json!({"parameterHash": 1})), "expected an intent for these arguments"),
    ];
    for (intent, words) in cases {
        let ended = run(&world, "effect", intent).await;
        assert_denied_by(&ended, "governed_intent", Code::CapabilityDenied, words);
    }
    assert_eq!(world.runs("effect"), 0);
    let ended = run(&world, "effect", with_context(of(json!({"n": 1})))).await;
    assert_eq!(value(&ended), &json!({"n": 1}));
}

#[tokio::test]
async fn a_call_costs_no_more_than_its_caller_intends() {
    let world = World::new().await;
    let most = |amount| Intent { max_amount: Some(amount), ..intent("paid") };
    let euro = chio_core::money::MonetaryAmount::new(10, "EUR");
    for amount in [usd(9), euro] {
        let ended = run(&world, "paid", most(amount)).await;
        assert_denied(&ended, Code::BudgetExhausted, "the intent is for at most");
    }
    assert_eq!(world.runs("paid"), 0);
    let ended = run(&world, "paid", most(usd(10))).await;
    assert_eq!(value(&ended), &json!({"n": 1}));
}

/// A grant, a tool, an intent, and whether the call needs an approval then.
type Ask = (&'static str, Option<u64>, Option<Intent>, u64, bool);

#[tokio::test(start_paused = true)]
async fn a_grant_asks_for_approval_from_what_a_call_may_cost() {
    let most = |tool| Some(Intent { max_amount: Some(usd(50)), ..intent(tool) });
    let billed = |mode| Some(Intent { metered_billing: quoted(mode, 20), ..intent("paid") });
    let cases: [Ask; 12] = [
        ("effect", None, None, 0, true),
        ("effect", None, None, 1, false),
        ("paid", None, None, 10, true),
        ("paid", None, None, 11, false),
        ("metered", Some(7), None, 7, true),
        ("metered", Some(7), None, 8, false),
        ("effect", None, most("effect"), 50, true),
        ("effect", None, most("effect"), 51, false),
        // The price is known: what the caller would pay at most does not matter.
        ("paid", None, most("paid"), 11, false),
        ("paid", None, billed(SettlementMode::MustPrepay), 20, true),
        ("paid", None, billed(SettlementMode::MustPrepay), 21, false),
        ("paid", None, billed(SettlementMode::HoldCapture), 20, false),
    ];
    // No approver is trusted here, so a call that needs it is denied for that.
    let world = World::new().await;
    for (tool, ceiling, intent, threshold_units, asks) in cases {
        let above = Constraint::RequireApprovalAbove(ApprovalThreshold { threshold_units });
        let max_cost_per_invocation = ceiling.map(usd);
        let grant = ToolGrant { max_cost_per_invocation, ..constrained(tool, above) };
        let ended = run_on(&world, grant, tool, intent).await;
        if asks {
            let words = format!("the grant asks for approval from {threshold_units} units on");
            assert_denied(&ended, Code::GuardDenied, &words);
            assert!(denial(&ended).reason.contains("nobody is trusted to give it"));
        } else {
            assert_eq!(value(&ended), &json!({"n": 1}), "{tool} {threshold_units}");
        }
    }
}

#[tokio::test]
async fn a_grant_that_asks_for_nothing_is_used_before_one_that_asks() {
    let threshold_units = 1;
    let above = Constraint::RequireApprovalAbove(ApprovalThreshold { threshold_units });
    let world = World::new().await;
    let token = token("cap-1", &[constrained("paid", above), grant("paid")]);
    let ended = world.run(world.call(&token, "paid", json!({}))).await;
    assert_eq!(value(&ended), &json!({}));
    assert_eq!(metadata(&ended, "attribution")["grant_index"], json!(1));
}

#[tokio::test(start_paused = true)]
async fn what_the_grant_or_a_payment_asks_for_can_be_approved() {
    let world = Setup::default().approved().start().await;
    let above = Constraint::RequireApprovalAbove(ApprovalThreshold { threshold_units: 10 });
    let cap = token("cap-1", &[constrained("paid", above)]);
    let plain = token("cap-2", &[grant("paid")]);
    let bought = Intent { commerce: pays("shop"), ..intent("paid") };
    for (token, intent, reason) in [
        (&cap, None, "the grant asks for approval from 10 units on, the call may cost 10"),
        (&plain, Some(bought), "the call pays a seller"),
    ] {
        let mut call = world.call(token, "paid", json!({}));
        call.governed_intent = intent.map(Box::new);
        let runs = world.runs("paid");
        let parked = world.park(call).await;
        assert_eq!(parked.approval.request.asked_by, "kernel");
        assert_eq!(parked.approval.request.reason, reason);
        assert_eq!((world.runs("paid"), world.ledger.reservations().len()), (runs, runs));
        let answer = world.approve(&parked).await;
        let (ended, _) = world.ended(parked).await;
        assert_eq!((value(&ended), world.runs("paid")), (&json!({}), runs + 1));
        let approval = &metadata(&ended, "governed_transaction")["approval"];
        assert_eq!(approval["token_id"], json!(answer.id));
        assert_eq!(metadata(&ended, "financial")["cost_charged"], json!(10));
    }
    // Nothing is paid for a tool without a price.
    let free = Intent { commerce: pays("shop"), ..intent("effect") };
    assert_eq!(value(&run(&world, "effect", free).await), &json!({"n": 1}));
}

#[tokio::test]
async fn constraints_on_governed_calls_hold_or_deny_for_their_own_reason() {
    use Constraint::{
        GovernedIntentRequired, MinimumAutonomyTier, MinimumRuntimeAssurance, SellerExact,
    };
    let world = World::new().await;
    let shop = || SellerExact("shop".to_owned());
    let seller = |name| Some(Intent { commerce: pays(name), ..intent("effect") });
    let runtime = |tier| Some(Intent { runtime_attestation: attested(tier), ..intent("effect") });
    let autonomy = |tier| Some(Intent { autonomy: acts(tier), ..intent("effect") });
    let plain = || Some(intent("effect"));
    let (basic, verified) = (RuntimeAssurance::Basic, RuntimeAssurance::Verified);
    let cases: [(Constraint, Option<Intent>, Option<&str>); 16] = [
        (GovernedIntentRequired, None, Some("expected a governed intent, found none")),
        (GovernedIntentRequired, plain(), None),
        (shop(), None, Some("expected an intent to pay `shop`")),
        (shop(), plain(), Some("expected an intent to pay `shop`")),
        (shop(), seller("other"), Some("expected an intent to pay `shop`")),
        (shop(), seller("shop"), None),
        (MinimumRuntimeAssurance(basic), None, Some("no verifier of runtime attestations")),
        (MinimumRuntimeAssurance(basic), runtime(RuntimeAssurance::None), Some("no verifier")),
        (MinimumRuntimeAssurance(basic), runtime(basic), None),
        (MinimumRuntimeAssurance(RuntimeAssurance::Attested), runtime(verified), Some("no verif")),
        (MinimumRuntimeAssurance(verified), runtime(verified), Some("no verifier")),
        (MinimumAutonomyTier(AutonomyTier::Direct), None, Some("an autonomy tier, found none")),
        (MinimumAutonomyTier(AutonomyTier::Direct), plain(), Some("autonomy tier, found none")),
        (MinimumAutonomyTier(AutonomyTier::Direct), autonomy(AutonomyTier::Direct), None),
        (
            MinimumAutonomyTier(AutonomyTier::Delegated),
            autonomy(AutonomyTier::Autonomous),
            Some("bonds behind autonomous calls are not supported"),
        ),
        (MinimumAutonomyTier(AutonomyTier::Direct), autonomy(AutonomyTier::Autonomous), None),
    ];
    for (constraint, intent, denied) in cases {
        let kind = constraint.kind();
        let ended = run_on(&world, constrained("effect", constraint), "effect", intent).await;
        match denied {
            None => assert_eq!(value(&ended), &json!({"n": 1}), "{kind}"),
            Some(words) => {
                assert_denied(&ended, Code::CapabilityDenied, words);
                let named = format!("constraint `{kind}` does not hold");
                assert!(denial(&ended).reason.contains(&named), "{}", denial(&ended));
            }
        }
    }
}

#[tokio::test]
async fn an_attestation_is_carried_as_a_claim() {
    let world = World::new().await;
    let shown = attested(RuntimeAssurance::Verified);
    let claim = Intent { runtime_attestation: shown.clone(), ..intent("effect") };
    let ended = run(&world, "effect", claim.clone()).await;
    let mut recorded = json!(shown);
    recorded["provenance_class"] = json!("asserted");
    assert_eq!(metadata(&ended, "runtime_attestation"), &recorded);
    let block = metadata(&ended, "governed_transaction");
    assert_eq!(block.get("runtime_assurance"), None, "nobody has verified it");
    for (issued_at, expires_at) in [(NOW - 20, NOW), (NOW + 1, NOW + 20)] {
        let shown = shown.clone().map(|it| RuntimeAttestation { issued_at, expires_at, ..it });
        let ended = run(&world, "effect", Intent { runtime_attestation: shown, ..claim.clone() });
        let words = "the runtime attestation:";
        assert_denied_by(&ended.await, "governed_intent", Code::CapabilityDenied, words);
    }
}

#[tokio::test]
async fn a_token_of_no_use_makes_no_use_of_an_intent() {
    let world = World::new().await;
    let mut call = world.call(&untrusted(), "effect", json!(1));
    call.governed_intent = Some(Box::new(intent("effect")));
    let ended = world.run(call).await;
    assert_eq!(denial(&ended).guard, "kernel");
    assert_eq!(metadata(&ended, "governed_transaction"), &json!(null));
}

/// A token of an issuer that the kernel does not trust.
fn untrusted() -> CapabilityToken {
    use chio_core::signed::Signed as _;
    let mut token = token("cap-x", &[grant("*")]);
    token.issuer = chio_testkit::key(9).public_key().clone();
    token.signed(&chio_testkit::key(9)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn of_two_thresholds_the_lower_one_counts() {
    for thresholds in [[10_u64, 1000], [1000, 10]] {
        let world = Setup::default().start().await;
        let mut granted = grant("*");
        granted.max_cost_per_invocation = Some(usd(50));
        let above = |threshold_units| {
            Constraint::RequireApprovalAbove(ApprovalThreshold { threshold_units })
        };
        granted.constraints = thresholds.map(above).into();
        let ended = run_on(&world, granted, "effect", Some(intent("effect"))).await;
        assert_eq!(world.runs("effect"), 0, "{thresholds:?}: {:?}", ended.outcome);
    }
}
