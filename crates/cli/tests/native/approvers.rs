//! Who may approve: the store's approver, others whom a kernel trusts; one answer counts.

use std::thread;

use chio_core::capability::CapabilityToken;
use chio_testkit::key;
use chio_testkit::process::Running;
use chio_testkit::token::grant;

use crate::support::{World, agent};

const CALL: [&str; 3] = ["demo", "needs_approval", r#"{"text": "please"}"#];

fn token(world: &World, id: &str) -> CapabilityToken {
    world.token(id, vec![grant("needs_approval")])
}

fn parked(world: &World, id: &str) -> (Running, String) {
    let call = world.start_call("a.sock", &token(world, id), &CALL);
    let request = world.waiting(id);
    (call, request)
}

#[test]
fn an_answer_counts_once_whoever_gives_it_and_whatever_it_says() {
    let (world, _server) = World::served();
    let (call, id) = parked(&world, "once-1");
    world.line(&format!("approvals approve {id} --data s")).ends(0);
    call.end().ends(0);
    for answer in ["approve", "deny"] {
        let run = world.line(&format!("approvals {answer} {id} --data s")).ends(1);
        run.complains("was approved already");
    }
    let (call, id) = parked(&world, "once-2");
    world.line(&format!("approvals deny {id} --data s")).ends(0);
    call.end().ends(1);
    let run = world.line(&format!("approvals approve {id} --data s")).ends(1);
    run.complains("was denied already");
    world.check_request("once-1", "used");
    world.check_request("once-2", "denied");
    world.audit();
}

#[test]
fn of_many_answers_at_once_one_counts() {
    let (world, _server) = World::served();
    let (call, id) = parked(&world, "race-1");
    let codes: Vec<i32> = thread::scope(|scope| {
        let answers: Vec<_> = (0..6)
            .map(|number| {
                let answer = if number % 2 == 0 { "approve" } else { "deny" };
                let line = format!("approvals {answer} {id} --data s");
                let world = &world;
                scope.spawn(move || world.line(&line).code)
            })
            .collect();
        answers.into_iter().map(|answer| answer.join().unwrap()).collect()
    });
    let given: Vec<_> = codes.iter().enumerate().filter(|(_, code)| **code == 0).collect();
    assert_eq!(given.len(), 1, "{codes:?}");
    let (state, code) = if given[0].0 % 2 == 0 { ("used", 0) } else { ("denied", 1) };
    call.end().ends(code);
    world.check_request("race-1", state);
    world.audit();
}

#[test]
fn somebody_whom_the_kernel_trusts_approves_with_a_key_of_their_own() {
    let world = World::new();
    world.folder.write_key("alice.key", &key(8));
    let _server = world.serve("--trusted-approver alice.key");
    let (call, id) = parked(&world, "alice-1");
    let line = format!("approvals approve {id} --key alice.key --valid-for 30s --data s");
    world.line(&line).ends(0).says(&format!("approver    {}", key(8).public_key()));
    call.end().ends(0);
    world.check_request("alice-1", "used");
    world.audit();
}

#[test]
fn the_answer_of_somebody_whom_nobody_trusts_does_not_count() {
    let world = World::new();
    world.folder.write_key("mallory.key", &key(8));
    let _server = world.serve("");
    let (call, id) = parked(&world, "mallory-1");
    // Refused at once, and the request still waits for an answer that counts.
    let run = world.line(&format!("approvals approve {id} --key mallory.key --data s")).ends(1);
    run.complains(&key(8).public_key().to_hex()).complains("the kernel does not trust");
    assert!(world.receipts("mallory-1").is_empty());
    world.line(&format!("approvals approve {id} --data s")).ends(0);
    call.end().ends(0);
    world.audit();
}

/// The agent answers its own request.
#[track_caller]
fn check_own(options: &str, expected: Result<(), &str>) {
    let world = World::new();
    let _server = world.serve(options);
    let (call, id) = parked(&world, "own-1");
    let run = world.line(&format!("approvals approve {id} --key agent.key --data s"));
    if let Err(reason) = expected {
        run.ends(1).complains(reason);
        world.line(&format!("approvals deny {id} --data s")).ends(0);
        call.end().ends(1);
    } else {
        run.ends(0);
        call.end().ends(0);
    }
    assert_eq!(world.receipts("own-1").len(), 1);
    world.audit();
}

#[test]
fn the_agent_does_not_approve_its_own_call_unless_trusted_and_told_that_it_may() {
    let trusted = format!("--trusted-approver {}", agent().public_key());
    check_own("", Err("the caller's own"));
    check_own("--allow-self-approval", Err("the caller's own"));
    check_own(&trusted, Err("the caller's own"));
    check_own(&format!("{trusted} --allow-self-approval"), Ok(()));
}

#[test]
fn no_key_has_two_parts_to_play() {
    let (world, server) = World::served();
    let kernel = server.kernel_key();
    let other = key(8).public_key().to_hex();
    let serve = "native serve --data s --unix b.sock";
    for (options, problem) in [
        (format!("--trusted-approver {kernel}"), "approver's key of its own, found a kernel's"),
        (format!("--trusted-approver {other} --trusted-kernel {other}"), "found a kernel's"),
        ("--trusted-approver s/authority.key".to_owned(), "found that of an issuer"),
        (format!("--trusted-approver {other} --trusted-issuer {other}"), "found that of an issuer"),
        ("--trusted-issuer s/approver.key".to_owned(), "found that of an issuer"),
        (
            "--kernel-key s/approver.key".to_owned(),
            "kernel key of its own, found that of an approver",
        ),
    ] {
        world.line(&format!("{serve} {options}")).ends(1).complains(problem);
    }
    let listed = world.line("kernel list --data s --json").ends(0).json();
    assert_eq!(listed["kernels"].as_array().unwrap().len(), 1, "none of them left a kernel");

    let (call, id) = parked(&world, "parts-1");
    for key in ["s/kernels/0/key", "s/authority.key"] {
        let run = world.line(&format!("approvals approve {id} --key {key} --data s")).ends(1);
        run.complains("expected an approver's key of its own");
    }
    // An approver who had the wrong key at hand can still answer.
    world.line(&format!("approvals approve {id} --data s")).ends(0);
    call.end().ends(0);
}

#[test]
fn a_store_without_its_approver_key_trusts_it_all_the_same() {
    let world = World::new();
    drop(world.serve(""));
    std::fs::rename(world.folder.path("s/approver.key"), world.folder.path("away.key")).unwrap();
    let _server = world.serve("");
    let (call, id) = parked(&world, "away-1");
    let run = world.line(&format!("approvals approve {id} --data s")).ends(2);
    run.complains("the store has no approver key: pass --key");
    world.line(&format!("approvals approve {id} --key away.key --data s")).ends(0);
    call.end().ends(0);
}
