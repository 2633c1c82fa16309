//! Bundles: receipts that verify without their store, and nothing that verifies after a change.

use std::time::Duration;

use chio_core::bundle::{BundleReport, BundleTrust, ReceiptBundle};
use chio_core::crypto::PublicKey;
use chio_kernel::proof::bundle;
use chio_kernel::store::ReceiptQuery;
use chio_testkit::{key, tamper};
use serde_json::{Value, json};

use crate::support::{Setup, World};

/// A log of seven receipts under four checkpoints, one of which is a child's.
async fn world() -> World {
    let world = Setup::default().config(|it| it.checkpoint_size = 2).start().await;
    for tool in ["echo", "effect", "fail", "ask", "stream", "echo"] {
        world.run_tool(tool, json!({"chunks": [1, 2]})).await;
    }
    world.kernel.drain(Duration::ZERO).await.unwrap();
    assert_eq!((world.logged().await.len(), world.checkpoints().await.len()), (7, 4));
    world
}

async fn pack(world: &World, take: fn(usize) -> bool) -> ReceiptBundle {
    let query = ReceiptQuery { limit: 100, ..ReceiptQuery::default() };
    let rows = world.store.query(&query).await.unwrap();
    let rows: Vec<_> = rows.into_iter().enumerate().filter(|(place, _)| take(*place)).collect();
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    bundle(&*world.store, &rows).await.unwrap()
}

fn by_authority(world: &World) -> BundleTrust {
    BundleTrust {
        authorities: vec![world.authority()],
        kernels: Vec::new(),
        ..BundleTrust::default()
    }
}

fn by_kernel(key: &PublicKey) -> BundleTrust {
    BundleTrust { authorities: Vec::new(), kernels: vec![key.clone()], ..BundleTrust::default() }
}

#[tokio::test]
async fn a_bundle_verifies_from_the_authority_alone() {
    let world = world().await;
    let all = pack(&world, |_| true).await;
    let report = all.examine(&by_authority(&world));
    let counts = (report.receipts, report.included, report.pending, report.checkpoints);
    assert_eq!((counts, report.problems), ((7, 7, 0, 4), Vec::<String>::new()));
    // It survives being written.
    let text = serde_json::to_vec(&all).unwrap();
    let again: ReceiptBundle = serde_json::from_slice(&text).unwrap();
    assert!(again.examine(&by_authority(&world)).is_valid());
}

#[tokio::test]
async fn a_bundle_verifies_from_one_pinned_kernel() {
    let world = world().await;
    let all = pack(&world, |_| true).await;
    assert!(all.examine(&by_kernel(world.kernel.public_key())).is_valid());
    let bare = ReceiptBundle { certificates: Vec::new(), ..all };
    assert!(bare.examine(&by_kernel(world.kernel.public_key())).is_valid());
    assert!(!bare.examine(&by_authority(&world)).is_valid());
}

#[tokio::test]
async fn a_bundle_of_some_receipts_has_what_they_need() {
    let world = world().await;
    for take in [|place| place == 0, |place| place == 6, |place| place % 2 == 0] {
        let some = pack(&world, take).await;
        let report = some.examine(&by_authority(&world));
        assert!(report.is_valid(), "{:?}", report.problems);
        assert_eq!((report.pending, report.included), (0, some.entries.len()));
    }
    let none = pack(&world, |_| false).await;
    let problems = none.examine(&by_authority(&world)).problems;
    assert_eq!(problems, ["expected at least one receipt, found none"]);
}

#[tokio::test]
async fn a_bundle_of_two_kernels_carries_both_certificates() {
    let world = world().await;
    let two = Setup::beside(&world).start().await;
    two.run_tool("echo", json!(1)).await;
    two.kernel.drain(Duration::ZERO).await.unwrap();
    let both = pack(&world, |_| true).await;
    assert_eq!((both.certificates.len(), both.entries.len()), (2, 8));
    assert!(both.examine(&by_authority(&world)).is_valid());
    // To know one of the kernels is not to know the other.
    assert!(!both.examine(&by_kernel(world.kernel.public_key())).is_valid());
}

#[tokio::test]
async fn a_receipt_that_no_checkpoint_covers_yet_is_told_apart() {
    let world = Setup::default().start().await;
    world.run_tool("echo", json!(1)).await;
    let bundle = pack(&world, |_| true).await;
    let report = bundle.examine(&by_authority(&world));
    assert!(report.problems[0].contains("not under a checkpoint yet"), "{:?}", report.problems);
    assert_eq!((report.receipts, report.included, report.pending), (1, 0, 1));
    let lenient = BundleTrust { allow_pending: true, ..by_authority(&world) };
    assert!(bundle.examine(&lenient).is_valid());
}

#[tokio::test]
async fn a_receipt_below_a_checkpoint_must_be_proved_there_and_places_are_there_once() {
    let world = world().await;
    let lenient = BundleTrust { allow_pending: true, ..by_authority(&world) };
    let mut unproved = pack(&world, |_| true).await;
    unproved.entries[0].inclusion = None;
    assert!(!unproved.examine(&lenient).is_valid());
    let mut moved = pack(&world, |_| true).await;
    moved.checkpoints.clear();
    moved.consistency.clear();
    for entry in &mut moved.entries {
        (entry.inclusion, entry.seq) = (None, 1);
    }
    assert!(!moved.examine(&lenient).is_valid());
    let mut doubled = pack(&world, |_| true).await;
    doubled.checkpoints.push(doubled.checkpoints[0].clone());
    assert!(!doubled.examine(&lenient).is_valid());
}

#[tokio::test]
async fn a_bundle_of_somebody_else_is_refused() {
    let world = world().await;
    let all = pack(&world, |_| true).await;
    let other = key(9).public_key().clone();
    for trust in [
        BundleTrust::default(),
        BundleTrust {
            authorities: vec![other.clone()],
            kernels: Vec::new(),
            ..BundleTrust::default()
        },
        by_kernel(&other),
        // An authority is no kernel, and a kernel no authority.
        by_kernel(&world.authority()),
        BundleTrust {
            authorities: vec![world.kernel.public_key().clone()],
            kernels: vec![],
            ..BundleTrust::default()
        },
    ] {
        assert!(!all.examine(&trust).is_valid(), "{trust:?}");
    }
}

/// Whether a change takes only away, or says twice what it said once.
fn says_no_more(what: &str, report: &BundleReport, whole: &BundleReport) -> bool {
    let (done, path) = what.split_once(' ').unwrap();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (done, parts.as_slice()) {
        // A receipt less is a smaller bundle.
        ("dropped", ["entries", _]) => report.receipts + 1 == whole.receipts,
        // Without its proof a receipt counts as pending.
        ("dropped", ["entries", _, "inclusion"]) => report.pending == 1,
        ("doubled", ["certificates" | "checkpoints" | "consistency", _]) => {
            report.receipts == whole.receipts && report.included == whole.included
        }
        // What it says of itself is one log's, and bundles of before say nothing.
        ("dropped", ["coverage"] | ["coverage", "0"]) => report.coverage.is_empty(),
        // This has a test of its own.
        ("doubled", ["entries", _]) => true,
        _ => false,
    }
}

#[tokio::test]
async fn every_change_to_a_bundle_is_refused() {
    let world = world().await;
    let all = pack(&world, |_| true).await;
    let trust = by_authority(&world);
    let whole = all.examine(&trust);
    let value: Value = serde_json::to_value(&all).unwrap();
    let changes = tamper::changes(&value);
    assert!(changes.len() > 500, "{}", changes.len());
    let mut accepted = Vec::new();
    for change in changes {
        let Ok(changed) = serde_json::from_value::<ReceiptBundle>(change.value) else { continue };
        let report = changed.examine(&trust);
        if report.is_valid() && changed != all && !says_no_more(&change.what, &report, &whole) {
            accepted.push(change.what);
        }
    }
    assert!(accepted.is_empty(), "{accepted:#?}");
}

// A reader that adds up what receipts tell, costs for one, must not be given one of them twice.
#[tokio::test]
async fn a_receipt_that_is_in_a_bundle_twice_is_refused() {
    let world = world().await;
    let mut all = pack(&world, |_| true).await;
    all.entries.push(all.entries[0].clone());
    assert!(!all.examine(&by_authority(&world)).is_valid());
}

#[tokio::test]
async fn parts_of_two_bundles_do_not_mix() {
    let (one, two) = (world().await, world().await);
    let (a, b) = (pack(&one, |_| true).await, pack(&two, |_| true).await);
    let trust = BundleTrust {
        authorities: vec![one.authority(), two.authority()],
        kernels: vec![],
        ..BundleTrust::default()
    };
    assert!(a.examine(&trust).is_valid() && b.examine(&trust).is_valid());
    let mixes = [
        ReceiptBundle { entries: b.entries.clone(), ..a.clone() },
        ReceiptBundle { checkpoints: b.checkpoints.clone(), ..a.clone() },
        ReceiptBundle { certificates: b.certificates.clone(), ..a.clone() },
        ReceiptBundle { consistency: b.consistency.clone(), ..a.clone() },
        ReceiptBundle { store_id: b.store_id, ..a.clone() },
    ];
    for mix in mixes {
        assert!(!mix.examine(&trust).is_valid());
    }
    // Receipts of one log, each with the proof of another.
    let mut shuffled = a;
    let proofs: Vec<_> = shuffled.entries.iter().map(|entry| entry.inclusion.clone()).collect();
    for (entry, proof) in shuffled.entries.iter_mut().zip(proofs.into_iter().rev()) {
        entry.inclusion = proof;
    }
    assert!(!shuffled.examine(&trust).is_valid());
}
