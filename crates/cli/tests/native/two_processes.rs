//! Two processes on one store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chio_core::capability::ToolGrant;
use chio_core::message::KernelMessage;
use chio_native_edge::NativeClient;
use chio_testkit::key;
use chio_testkit::process::{request, until};
use chio_testkit::token::{child, grant};
use serde_json::json;

use crate::support::{World, agent, block_on, reason, written};

#[test]
fn two_processes_have_slots_and_logs_of_their_own_and_one_truth() {
    let world = World::new();
    let (mut first, mut second) = (world.serve(""), world.serve_at("b.sock", ""));
    assert_ne!(first.kernel_key(), second.kernel_key());
    let token = world.token("both-1", vec![grant("echo"), grant("note_put")]);
    let (mut one, mut other) = (first.connect(), second.connect());
    for wire in [&mut one, &mut other] {
        let response = wire.call("1", &token, "note_put", json!({"name": "n", "text": "x"}));
        assert_eq!(written(&response.result)["status"], "ok");
    }
    let listed = world.line("kernel list --data s --json").ends(0).json();
    let kernels = listed["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 2);
    assert_ne!(kernels[0]["log_id"], kernels[1]["log_id"]);
    assert!(kernels.iter().all(|kernel| kernel["receipts"] == 1), "{listed}");

    // Revoked by a third process, told and enforced by both.
    world.line("capability revoke both-1 --data s").ends(0);
    for wire in [&mut one, &mut other] {
        let told = wire.message();
        assert_eq!(told, Some(KernelMessage::CapabilityRevoked { id: "both-1".to_owned() }));
        let response = wire.call("2", &token, "echo", json!({"text": "hi"}));
        assert_eq!(written(&response.result)["error"]["code"], "capability_revoked");
    }
    assert_eq!(world.receipts("both-1").len(), 4);
    first.end();
    second.end();
    let audit = world.audit();
    assert_eq!(audit["logs"].as_array().unwrap().len(), 2);
    assert_eq!(audit["receipts"], 4);

    // A third takes the first free slot.
    let third = world.serve("");
    assert_eq!(third.kernel_key(), first.kernel_key());
}

#[test]
fn what_a_process_that_died_has_signed_comes_under_a_checkpoint_of_its_kernel() {
    let world = World::new();
    let (mut first, mut second) = (world.serve(""), world.serve_at("b.sock", ""));
    let token = world.token("died-1", vec![grant("echo")]);
    first.connect().call("1", &token, "echo", json!({"text": "last words"}));
    let key = first.kernel_key();
    first.kill();
    until("a checkpoint in its place", || {
        let audit = world.audit();
        let logs = audit["logs"].as_array().unwrap();
        let log = logs.iter().find(|log| log["kernel_key"] == *key).unwrap();
        (log["entries"] == 1 && log["pending"] == 0).then_some(())
    });
    // It goes on from there.
    let mut again = world.serve("");
    assert_eq!(again.kernel_key(), key);
    again.connect().call("2", &token, "echo", json!({"text": "again"}));
    again.end();
    second.end();
    world.audit();
}

/// Sixty-four callers, two processes, two tokens handed on from one that has a thousand calls.
#[test]
fn a_thousand_calls_are_a_thousand_whoever_makes_them_wherever() {
    const BUDGET: u32 = 1000;
    let world = World::new();
    let (mut first, mut second) = (world.serve(""), world.serve_at("b.sock", ""));
    let authority = world.authority();
    let grants = vec![ToolGrant { max_invocations: Some(BUDGET), ..grant("note_put") }];
    let parent = world.token("thousand", grants);
    world.write_token("parent.json", &parent);
    world.line("capability import parent.json --data s").ends(0);
    let siblings = [(8, "sibling-1"), (7, "sibling-2")]
        .map(|(seed, id)| child(&authority, &parent, &agent(), key(seed).public_key(), id));
    let ran = Arc::new(AtomicU64::new(0));
    block_on(async {
        let mut callers = tokio::task::JoinSet::new();
        for number in 0..64 {
            let server = if number % 2 == 0 { &first } else { &second };
            let endpoint = server.endpoint().parse().unwrap();
            let (token, ran) = (siblings[number / 2 % 2].clone(), Arc::clone(&ran));
            callers.spawn(async move {
                let client = NativeClient::connect(&endpoint).await.unwrap();
                for call in 0.. {
                    let note = json!({"name": format!("n{number}"), "text": call.to_string()});
                    let request = request(&call.to_string(), &token, "note_put", note);
                    let response = client.call(request, |_, _| ()).await.unwrap();
                    let result = written(&response.result);
                    if result["status"] != "ok" {
                        let detail = result["error"]["detail"].to_string();
                        assert!(detail.contains("budget exhausted"), "{result}");
                        return;
                    }
                    ran.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        callers.join_all().await;
    });
    assert_eq!(ran.load(Ordering::Relaxed), u64::from(BUDGET));
    let puts = world.folder.read("s/notes/notes.jsonl").lines().count();
    assert_eq!(puts, 1000);
    assert_eq!(world.rows("--outcome allow").len(), 1000);
    assert_eq!(world.rows("--outcome deny").len(), 64);
    first.end();
    second.end();
    let audit = world.audit();
    assert_eq!(audit["receipts"], 1064);
    assert!(audit["logs"].as_array().unwrap().iter().all(|log| log["pending"] == 0));
}

#[test]
fn a_token_issued_into_the_store_is_known_to_every_process() {
    let world = World::new();
    let first = world.serve("--peer agent.key");
    let second = world.serve_at("b.sock", "--peer agent.key");
    let line = "capability issue --data s --grant demo/echo --subject agent.key --id shared-1";
    world.line(line).ends(0);
    for server in [&first, &second] {
        let endpoint = server.endpoint();
        let socket = endpoint.strip_prefix("unix:").unwrap();
        until("the token to be listed", || {
            let run = world.run(&["native", "list", "--unix", socket]).ends(0);
            run.stdout.contains("shared-1").then_some(())
        });
    }
}

/// Stops a process while it does not write: it still holds the lock of the index.
#[test]
fn a_stopped_process_does_not_keep_its_siblings_from_calls_revocations_and_queries() {
    let world = World::new();
    let (first, second) = (world.serve(""), world.serve_at("b.sock", ""));
    let token = world.token("stopped-1", vec![grant("echo")]);
    let hi = json!({"text": "hi"});
    first.connect().call("1", &token, "echo", hi.clone());
    until("a checkpoint, after which it is idle", || {
        let log = world.audit()["logs"].clone();
        log.as_array().unwrap().iter().all(|log| log["pending"] == 0).then_some(())
    });
    world.rows("");
    first.signal("STOP");
    let mut wire = second.connect();
    let response = wire.call("2", &token, "echo", hi.clone());
    assert_eq!(written(&response.result)["status"], "ok");
    assert_eq!(world.receipts("stopped-1").len(), 2);
    world.line("capability revoke stopped-1 --data s").ends(0);
    let told = wire.message();
    assert_eq!(told, Some(KernelMessage::CapabilityRevoked { id: "stopped-1".to_owned() }));
    let response = wire.call("3", &token, "echo", hi);
    assert_eq!(reason(&response.receipt), "capability `stopped-1` has been revoked");
    first.signal("CONT");
    assert_eq!(world.receipts("stopped-1").len(), 3);
    world.audit();
}
