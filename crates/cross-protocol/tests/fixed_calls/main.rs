//! Fixed calls have the receipts that they always had, byte for byte.
//!
//! Clock, randomness and keys are fixed, so each receipt is, too. Which versions wrote the golden
//! files, `spec/vectors/receipts/README.md` says. A receipt is signed and kept for years: a change of
//! one byte of it changes a format, and the README has to say so.
#![cfg(test)]

mod calls;
mod golden;
mod server;
mod world;

use chio_core::canonical;
use chio_core::checkpoint::KernelCheckpoint;
use chio_core::hash::sha256_hex;
use chio_core::receipt::{ChioReceipt, Decision, EXECUTION_MEMBER, Execution, LoggedReceipt};
use chio_cross_protocol::DiscoveryProtocol;
use serde_json::{Value, json};

use crate::golden::Recorded;
use crate::world::World;

/// Runs every fixed call of a protocol in a world of its own, then signs the last checkpoint.
async fn record(source: DiscoveryProtocol) -> Vec<Recorded> {
    let mut world = World::new(source).await;
    let mut recorded = Vec::new();
    for call in calls::all(source) {
        recorded.push(world.run(call).await);
    }
    recorded.push(world.end().await);
    recorded
}

async fn check(source: DiscoveryProtocol) {
    let recorded = record(source).await;
    let expected = golden::load(source);
    let names = |all: &[Recorded]| all.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&recorded), names(&expected), "the calls of the golden file");
    for (found, expected) in recorded.iter().zip(&expected) {
        let name = format!("{source}: {}", expected.name);
        assert_eq!(found.outcome, expected.outcome, "{name}: the outcome");
        assert_eq!(found.result, expected.result, "{name}: the answer in the protocol's form");
        let contents = |it: &Recorded| it.log.iter().map(|entry| entry.content.clone()).collect();
        let (written, golden): (Vec<Value>, Vec<Value>) = (contents(found), contents(expected));
        assert_eq!(written, golden, "{name}: the receipts");
        // The same members and values could still be written as other bytes.
        assert_eq!(found.log, expected.log, "{name}: the bytes of the receipts");
    }
}

#[tokio::test]
async fn native_calls_have_the_receipts_that_they_always_had() {
    check(DiscoveryProtocol::Native).await;
}

#[tokio::test]
async fn mcp_calls_have_the_receipts_that_they_always_had() {
    check(DiscoveryProtocol::Mcp).await;
}

#[tokio::test]
async fn a2a_calls_have_the_receipts_that_they_always_had() {
    check(DiscoveryProtocol::A2a).await;
}

#[tokio::test]
async fn calls_of_protocols_without_an_edge_have_the_receipts_that_they_always_had() {
    for source in [DiscoveryProtocol::Http, DiscoveryProtocol::Acp, DiscoveryProtocol::OpenAi] {
        check(source).await;
    }
}

#[tokio::test]
async fn two_runs_of_the_fixed_calls_write_the_same_bytes() {
    let source = DiscoveryProtocol::Mcp;
    assert_eq!(record(source).await, record(source).await);
}

// What is said of a call now is one member more, and nothing of it was said before.
#[test]
fn receipts_of_the_first_version_differ_by_their_hops_and_what_became_of_the_call() {
    let members = |receipt: &ChioReceipt| {
        let mut members = receipt.metadata.clone().unwrap();
        let members = members.as_object_mut().unwrap();
        let said = members.remove(EXECUTION_MEMBER);
        // The hops of a trace were others, too.
        members.remove("chio");
        (said, members.clone(), receipt.action.clone(), receipt.evidence.clone())
    };
    for source in DiscoveryProtocol::ALL {
        for (now, first) in golden::load(source).iter().zip(&golden::load_first(source)) {
            assert_eq!((&now.name, now.log.len()), (&first.name, first.log.len()));
            for (now, first) in now.log.iter().zip(&first.log) {
                let read = |logged: &golden::Logged| {
                    let bytes = canonical::to_vec(&logged.content).unwrap();
                    LoggedReceipt::from_slice(&bytes)
                };
                let (Ok(LoggedReceipt::Call(now)), Ok(LoggedReceipt::Call(first))) =
                    (read(now), read(first))
                else {
                    continue;
                };
                let (said, rest, action, evidence) = members(&now);
                assert_eq!((None, rest, action, evidence), members(&first));
                if first.decision == Some(Decision::Allow) {
                    assert_eq!(now.decision, first.decision);
                    assert_eq!(now.execution() == Some(Execution::Completed), said.is_none());
                } else {
                    assert!(said.is_some() && first.execution().is_none());
                }
            }
        }
    }
}

// A golden file that was edited by hand would prove nothing.
#[test]
fn the_golden_receipts_verify_and_their_hashes_are_those_of_their_bytes() {
    for source in DiscoveryProtocol::ALL {
        let (now, first) = (golden::load(source), golden::load_first(source));
        for entry in now.iter().chain(&first).flat_map(|recorded| &recorded.log) {
            let bytes = canonical::to_vec(&entry.content).unwrap();
            assert_eq!(sha256_hex(&bytes), entry.sha256, "{}", entry.content);
            match LoggedReceipt::from_slice(&bytes) {
                Ok(LoggedReceipt::Call(receipt)) => receipt.verify().unwrap(),
                Ok(LoggedReceipt::Child(child)) => {
                    chio_core::signed::Signed::check_signature(&*child).unwrap();
                }
                Err(_) => {
                    let checkpoint: KernelCheckpoint =
                        serde_json::from_value(entry.content.clone()).unwrap();
                    assert_eq!(json!(checkpoint), entry.content);
                }
            }
        }
    }
}
