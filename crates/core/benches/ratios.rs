//! What the core costs, as ratios against a floor measured in the same run.
//!
//! Machines are noisy, so nothing here is a time to compare with another day's: floor and product
//! are measured in turns, many times, and the medians are compared. `cargo bench -p chio-core`.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a command line program on fixed data"
)]

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, ParsedPublicKey};
use chio_core::canonical;
use chio_core::capability::{CapabilityToken, VerifyOptions};
use chio_core::crypto::Keypair;
use chio_core::hash::sha256;
use chio_core::message::AgentMessage;
use chio_core::receipt::{ChioReceipt, ContentHash, Decision, GuardEvidence, ToolCallAction};
use chio_core::signed::Signed;
use chio_core::strict;
use serde_json::{Value, json};

/// Rounds of floor and product in turns.
const ROUNDS: usize = 300;
/// Operations in one round.
const BATCH: usize = 50;
/// A receipt of the size that calls leave behind.
const RECEIPT_BYTES: usize = 1500;

fn main() {
    // `cargo test --benches` runs this too; then once through is enough.
    let rounds = if std::env::args().any(|argument| argument == "--test") { 1 } else { ROUNDS };
    println!("{:<44} {:>9} {:>9} {:>7} {:>7}", "", "floor µs", "ours µs", "ratio", "goal");
    receipts(rounds);
    tokens(rounds);
    canonical_json(rounds);
    reading(rounds);
}

/// The median time of one operation, in microseconds, of both, measured in turns.
fn measure(rounds: usize, mut floor: impl FnMut(), mut ours: impl FnMut()) -> (f64, f64) {
    let (mut floors, mut times) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        floors.push(time(&mut floor));
        times.push(time(&mut ours));
    }
    (median(floors), median(times))
}

fn time(operation: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..BATCH {
        operation();
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(u32::try_from(BATCH).unwrap())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap()
}

fn report(what: &str, (floor, ours): (f64, f64), goal: Option<f64>) {
    let ratio = floor / ours;
    let goal = goal.map_or(String::from("-"), |goal| {
        format!("{goal:.2}{}", if ratio >= goal { "" } else { " !" })
    });
    println!("{what:<44} {floor:>9.2} {ours:>9.2} {ratio:>7.2} {goal:>7}");
}

/// A typical mediated call: its parameters, output and metadata.
struct Call {
    parameters: Value,
    output: Value,
    metadata: Value,
}

fn call() -> Call {
    let key = |n: u8| Keypair::from_seed(&[n; 32]).public_key().to_hex();
    Call {
        parameters: json!({
            "path": "/workspace/reports/2026/q3/summary.md",
            "limit": 200,
            "encoding": "utf-8",
            "filters": ["headings", "tables"],
        }),
        output: json!({"text": "Revenue grew in all regions. ".repeat(8), "lines": 200}),
        metadata: json!({
            "attribution": {
                "subject_key": key(2), "issuer_key": key(1), "delegation_depth": 0, "grant_index": 0,
            },
            "receipt_context": {"request_id": "req-01J9Z8Y7X6W5V4U3T2S1R0Q9P8"},
            "route_selection": {
                "routeSelectionId": "rsel-1", "decision": "select", "sourceProtocol": "mcp",
                "requestedTargetProtocol": "native", "selectedTargetProtocol": "native",
            },
        }),
    }
}

/// Everything that a kernel does to leave a receipt, from the call's own values.
fn build_receipt(call: &Call, kernel: &Keypair) -> ChioReceipt {
    let action = ToolCallAction::new(call.parameters.clone()).unwrap();
    let content_hash = ContentHash::of_value(&call.output).unwrap();
    let public = kernel.public_key().clone();
    let evidence = ["path-allowlist", "secret-scan"].map(|name| GuardEvidence {
        guard_name: name.to_owned(),
        verdict: true,
        details: None,
    });
    let receipt = ChioReceipt {
        id: "rcpt-01J9Z8Y7X6W5V4U3T2S1R0Q9P8".to_owned(),
        capability_id: "cap-01J9Z8Y7X6W5V4U3T2S1R0Q9P8".to_owned(),
        tool_server: "srv-files".to_owned(),
        tool_name: "read_file".to_owned(),
        policy_hash: "823412d1eacb67956220e532959f0104603057c88704863ca38e7cd188fda812".to_owned(),
        evidence: evidence.into(),
        metadata: Some(call.metadata.clone()),
        ..ChioReceipt::mediated(1_700_000_100, action, Decision::Allow, content_hash, public)
    };
    receipt.signed(kernel).unwrap()
}

fn receipts(rounds: usize) {
    let (call, kernel) = (call(), Keypair::from_seed(&[7; 32]));
    let receipt = build_receipt(&call, &kernel);
    let bytes = canonical::to_vec(&receipt).unwrap();
    assert!(bytes.len().abs_diff(RECEIPT_BYTES) < 150, "a typical receipt, not {}", bytes.len());
    let raw = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let sign = || {
        black_box(raw.sign(black_box(&bytes)));
    };

    let whole = measure(rounds, sign, || {
        black_box(build_receipt(black_box(&call), &kernel));
    });
    report("receipt: build, hash, sign / raw sign", whole, Some(0.6));

    // Where the rest of the time goes.
    let draft = receipt.clone();
    let step = measure(rounds, sign, || {
        black_box(canonical::to_vec(black_box(&draft)).unwrap());
    });
    report("  of that: canonical form", step, None);
    let step = measure(rounds, sign, || {
        black_box(sha256(black_box(&bytes)));
    });
    report("  of that: SHA-256 of it", step, None);
    let step = measure(rounds, sign, || {
        black_box((call.metadata.clone(), call.parameters.clone()));
    });
    report("  of that: copying parameters, metadata", step, None);

    let public = ParsedPublicKey::new(&ED25519, raw.public_key().as_ref()).unwrap();
    let signature = raw.sign(&bytes);
    let verified = measure(
        rounds,
        || public.verify_sig(black_box(&bytes), signature.as_ref()).unwrap(),
        || black_box(&receipt).verify().unwrap(),
    );
    report("receipt: verify / raw verify", verified, None);
}

fn token() -> (CapabilityToken, Keypair) {
    let issuer = Keypair::from_seed(&[1; 32]);
    let text = include_str!("../../../spec/vectors/golden/capability.json");
    let golden: Value = serde_json::from_str(text).unwrap();
    let token = golden.pointer("/full/token").unwrap().clone();
    (serde_json::from_value(token).unwrap(), issuer)
}

fn tokens(rounds: usize) {
    let (token, issuer) = token();
    let trusted = [issuer.public_key().clone()];
    let options =
        VerifyOptions { now: token.issued_at, trusted_issuers: &trusted, max_chain_depth: Some(5) };
    let input = token.signing_input().unwrap();
    let key = token.issuer.as_ed25519().unwrap();
    let public = ParsedPublicKey::new(&ED25519, key).unwrap();
    let signature = *token.signature.as_ed25519().unwrap();
    let raw = || public.verify_sig(black_box(&input), &signature).unwrap();

    let verified = measure(rounds, raw, || {
        black_box(black_box(&token).verify(&options).unwrap());
    });
    report("token: verify / raw verify", verified, Some(0.85));

    let text = canonical::to_vec(&token).unwrap();
    let verified = measure(rounds, raw, || {
        let token: CapabilityToken = strict::from_slice(black_box(&text)).unwrap();
        black_box(token.verify(&options).unwrap());
    });
    report("token: read strictly, verify / raw verify", verified, None);
}

fn canonical_json(rounds: usize) {
    let receipt = build_receipt(&call(), &Keypair::from_seed(&[7; 32]));
    let value = serde_json::to_value(&receipt).unwrap();
    let plain = measure(
        rounds,
        || {
            black_box(serde_json::to_vec(black_box(&receipt)).unwrap());
        },
        || {
            black_box(canonical::to_vec(black_box(&receipt)).unwrap());
        },
    );
    report("canonical receipt / serde_json", plain, Some(0.5));
    let plain = measure(
        rounds,
        || {
            black_box(serde_json::to_vec(black_box(&value)).unwrap());
        },
        || {
            black_box(canonical::to_vec(black_box(&value)).unwrap());
        },
    );
    report("canonical value tree / serde_json", plain, Some(0.5));
    let published = measure(
        rounds,
        || {
            black_box(serde_json_canonicalizer::to_vec(black_box(&receipt)).unwrap());
        },
        || {
            black_box(canonical::to_vec(black_box(&receipt)).unwrap());
        },
    );
    report("canonical receipt / published canonicalizer", published, None);
}

fn reading(rounds: usize) {
    let (token, _) = token();
    let message = json!({
        "type": "tool_call_request", "id": "req-1", "capability_token": token,
        "server_id": "srv-files", "tool": "file_read", "params": call().parameters,
    });
    let text = canonical::to_vec(&message).unwrap();
    let read = measure(
        rounds,
        || {
            black_box(serde_json::from_slice::<Value>(black_box(&text)).unwrap());
        },
        || {
            black_box(AgentMessage::decode(black_box(&text)).unwrap());
        },
    );
    report("message: read strictly / serde_json tree", read, None);
}
