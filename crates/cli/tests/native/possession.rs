//! Proofs of possession: a stolen token is not enough, and a proof is for one call.

use std::thread;

use chio_core::capability::{CapabilityToken, DpopProof, DpopTarget, ToolGrant};
use chio_core::message::{ToolCallRequest, ToolCallResponse};
use chio_core::receipt::Decision;
use chio_testkit::key;
use chio_testkit::process::{Server, request};
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::support::{World, agent, now, written};

fn token(world: &World, id: &str, tools: &[&str]) -> CapabilityToken {
    let asks = |tool: &&str| ToolGrant { dpop_required: Some(true), ..grant(tool) };
    world.token(id, tools.iter().map(asks).collect())
}

/// A call with the agent's proof for it.
fn proved(id: &str, token: &CapabilityToken, tool: &str, params: Value) -> ToolCallRequest {
    let mut request = request(id, token, tool, params);
    let target = DpopTarget {
        token,
        tool_server: &request.server_id,
        tool_name: &request.tool,
        arguments: &request.params,
    };
    let nonce = format!("nonce-{id}");
    request.dpop_proof = Some(DpopProof::new(&target, nonce, now(), &agent()).unwrap());
    request
}

fn send(server: &Server, request: &ToolCallRequest) -> ToolCallResponse {
    let mut wire = server.connect();
    wire.send_request(request.clone());
    wire.response()
}

#[track_caller]
fn check_used(response: &ToolCallResponse) {
    let result = written(&response.result);
    assert_eq!(result["error"]["code"], "capability_denied", "{result}");
    assert!(result["error"]["detail"].to_string().contains("used before"), "{result}");
}

#[test]
fn a_token_that_asks_for_it_is_used_with_the_subjects_key_and_not_without() {
    let (world, _server) = World::served();
    let issue =
        "capability issue --data s --subject agent.key --grant demo/echo --dpop --id dpop-1";
    world.line(&format!("{issue} --out dpop-1.json")).ends(0);
    world.folder.write_key("thief.key", &key(8));
    let call = |options: &[&str]| {
        let words = ["native", "call", "--unix", "a.sock", "--token", "dpop-1.json"];
        world.run(&[&words, options, &["demo", "echo", r#"{"text": "hi"}"#]].concat())
    };
    call(&[]).ends(1).complains("asks for a proof of possession, found none");
    let receipts = world.receipts("dpop-1");
    assert_eq!(receipts.len(), 1);
    let denied = &receipts[0].decision;
    assert!(
        matches!(denied, Some(Decision::Deny { guard, .. }) if guard == "proof_of_possession"),
        "{denied:?}"
    );
    let thief = call(&["--dpop-key", "thief.key"]).ends(1);
    assert!(thief.stderr.starts_with("error: "), "{thief:#?}");
    assert_eq!(world.receipts("dpop-1").len(), 1, "nothing was sent");
    // Each time with a nonce of its own.
    for _ in 0..2 {
        call(&["--dpop-key", "agent.key"]).ends(0).says("hi");
    }
    assert_eq!(world.receipts("dpop-1").len(), 3);
    world.audit();
}

#[test]
fn a_proof_is_for_one_call_also_after_a_restart_and_in_another_process() {
    let world = World::new();
    let mut first = world.serve("");
    let second = world.serve_at("b.sock", "");
    let token = token(&world, "replay-1", &["echo"]);
    let request = proved("1", &token, "echo", json!({"text": "hi"}));
    assert_eq!(written(&send(&first, &request).result)["status"], "ok");
    check_used(&send(&first, &request));
    check_used(&send(&second, &request));
    first.end();
    let third = world.serve("");
    check_used(&send(&third, &request));
    assert_eq!(world.receipts("replay-1").len(), 4);
    world.audit();
}

#[test]
fn a_proof_that_was_used_when_its_kernel_was_killed_stays_used() {
    let (world, mut server) = World::served();
    let token = token(&world, "killed-2", &["sleep"]);
    let request = proved("1", &token, "sleep", json!({"ms": 60_000}));
    let mut wire = server.connect();
    wire.send_request(request.clone());
    chio_testkit::process::until("the intent to be durable", || {
        let listed = world.line("kernel list --data s --json").ends(0).json();
        (listed["kernels"][0]["open_intents"] == 1).then_some(())
    });
    server.kill();
    let server = world.serve("");
    check_used(&send(&server, &request));
    assert_eq!(world.receipts("killed-2").len(), 2);
    world.audit();
}

#[test]
fn of_many_who_use_one_proof_at_once_in_two_processes_one_gets_through() {
    let world = World::new();
    let servers = [world.serve(""), world.serve_at("b.sock", "")];
    let token = token(&world, "race-2", &["echo"]);
    let request = proved("1", &token, "echo", json!({"text": "hi"}));
    let responses: Vec<ToolCallResponse> = thread::scope(|scope| {
        let sending: Vec<_> = (0..8)
            .map(|number| {
                let (server, request) = (&servers[number % 2], &request);
                scope.spawn(move || send(server, request))
            })
            .collect();
        sending.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let (ran, refused): (Vec<_>, Vec<_>) =
        responses.iter().partition(|response| written(&response.result)["status"] == "ok");
    assert_eq!((ran.len(), refused.len()), (1, 7));
    refused.into_iter().for_each(check_used);
    assert_eq!(world.receipts("race-2").len(), 8);
    world.audit();
}

#[test]
fn a_proof_for_other_arguments_another_tool_or_another_time_is_refused() {
    let (world, server) = World::served();
    let token = token(&world, "other-1", &["echo", "needs_approval"]);
    let check = |id: &str, change: &dyn Fn(&mut ToolCallRequest), problem: &str| {
        let mut request = proved(id, &token, "echo", json!({"text": "hi"}));
        change(&mut request);
        let response = send(&server, &request);
        let result = written(&response.result);
        assert_eq!(result["error"]["code"], "capability_denied", "{result}");
        assert!(result["error"]["detail"].to_string().contains(problem), "{result}");
    };
    check("1", &|it| it.params = json!({"text": "ho"}), "another `action_hash`");
    check("2", &|it| it.tool = "needs_approval".to_owned(), "another `tool_name`");
    check("3", &|it| it.dpop_proof.as_mut().unwrap().body.issued_at -= 301, "issued at or after");
    check("4", &|it| it.dpop_proof.as_mut().unwrap().body.issued_at += 60, "issued by");
    check("5", &|it| it.dpop_proof.as_mut().unwrap().body.nonce.push('x'), "signature");
    assert_eq!(world.receipts("other-1").len(), 5);
    world.audit();
}

#[test]
fn a_proof_is_used_while_its_call_waits_and_holds_when_it_goes_on() {
    let (world, server) = World::served();
    let token = token(&world, "both-3", &["needs_approval"]);
    let request = proved("1", &token, "needs_approval", json!({"text": "please"}));
    let mut wire = server.connect();
    wire.send_request(request.clone());
    let id = world.waiting("both-3");
    check_used(&send(&server, &request));
    world.line(&format!("approvals approve {id} --data s")).ends(0);
    assert_eq!(written(&wire.response().result)["status"], "ok");
    check_used(&send(&server, &request));
    assert_eq!(world.receipts("both-3").len(), 3);
    world.audit();
}
