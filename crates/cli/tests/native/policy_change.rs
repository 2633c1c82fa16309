//! Policies that change while a kernel serves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use chio_core::capability::CapabilityToken;
use chio_testkit::process::{Server, until};
use chio_testkit::receipts::denied_by;
use chio_testkit::token::grant;
use serde_json::json;

use crate::policy::hash;
use crate::support::{World, written};

/// A policy that blocks this tool and nothing else.
fn blocks(tool: &str) -> String {
    format!("hushspec: \"0.1.0\"\nname: mine\nrules:\n  tool_access: {{block: [{tool}]}}\n")
}

/// A world that is served under `policy.yaml`.
fn served(policy: &str, options: &str) -> (World, Server) {
    let world = World::new();
    world.folder.write("policy.yaml", policy);
    let server = world.serve(&format!("--policy policy.yaml {options}"));
    (world, server)
}

/// Waits until the server has said this this many times.
#[track_caller]
fn says(server: &Server, text: &str, times: usize) {
    until(text, || (server.stderr().matches(text).count() >= times).then_some(()));
}

/// Calls `echo`; the hash of the policy that judged, and who denied.
fn echo(server: &Server, token: &CapabilityToken) -> (String, Option<String>) {
    let response = server.connect().call("1", token, "echo", json!({"text": "hi"}));
    let ran = written(&response.result)["status"] == "ok";
    let by = (!ran).then(|| denied_by(&response.receipt).to_owned());
    (response.receipt.policy_hash, by)
}

#[test]
fn a_change_of_the_file_takes_effect_without_a_word() {
    let (world, server) = served(&blocks("now"), "");
    let token = world.token("change-1", vec![grant("echo")]);
    let before = hash(&world, "policy.yaml");
    assert_eq!(echo(&server, &token), (before, None));
    world.folder.write("policy.yaml", blocks("echo"));
    let after = hash(&world, "policy.yaml");
    says(&server, &format!("chio: policy reloaded: mine {after}"), 1);
    assert_eq!(echo(&server, &token), (after, Some("tool-access".to_owned())));
    // It is told once, and so is nothing else.
    assert_eq!(server.stderr().matches("chio: policy ").count(), 2, "{}", server.stderr());
}

#[test]
fn a_hangup_has_the_policy_read_anew_even_if_nothing_has_changed() {
    let (world, mut server) = served(&blocks("now"), "--shadow-policy strict");
    let told = format!("policy reloaded: mine {}", hash(&world, "policy.yaml"));
    server.signal("HUP");
    says(&server, &told, 1);
    says(&server, &format!("shadow policy reloaded: strict {}", hash(&world, "strict")), 1);
    server.signal("HUP");
    says(&server, &told, 2);
    server.end();
}

#[test]
fn a_broken_policy_is_told_and_the_old_one_stays() {
    let (world, server) = served(&blocks("echo"), "");
    let token = world.token("broken-1", vec![grant("echo")]);
    let old = hash(&world, "policy.yaml");
    let judged = (old.clone(), Some("tool-access".to_owned()));
    let stays = format!("chio: policy not reloaded, mine {old} stays:");

    let broken = blocks("echo").replace("block:", "blok:").replace("rules:", "rules: # x");
    world.folder.write("policy.yaml", format!("{broken}  egress: 3\n"));
    says(&server, "chio:   policy.yaml:5:11: ", 1);
    says(&server, &stays, 1);
    says(
        &server,
        "chio:   policy.yaml:4:17: `rules.tool_access`: there is no `blok`; did you mean `block`?",
        1,
    );
    assert_eq!(echo(&server, &token), judged);

    // A file that is gone, one that cannot be read, and one that is no text.
    std::fs::remove_file(world.folder.path("policy.yaml")).unwrap();
    says(&server, "chio:   policy.yaml:1:1: there is no such file", 1);
    std::fs::create_dir(world.folder.path("policy.yaml")).unwrap();
    says(&server, "chio:   policy.yaml:1:1: expected a file, found a folder", 1);
    std::fs::remove_dir(world.folder.path("policy.yaml")).unwrap();
    world.folder.write("policy.yaml", b"hushspec: \xff");
    says(&server, "expected UTF-8 text", 1);
    says(&server, &stays, 4);
    assert_eq!(echo(&server, &token), judged);

    // What is mended takes effect.
    world.folder.write("policy.yaml", blocks("now"));
    let new = hash(&world, "policy.yaml");
    says(&server, &format!("chio: policy reloaded: mine {new}"), 1);
    assert_eq!(echo(&server, &token), (new, None));
    // Each was told once, though it was looked at more often than that.
    assert_eq!(server.stderr().matches("`blok`").count(), 1, "{}", server.stderr());
}

#[test]
fn every_file_that_belongs_to_a_policy_is_watched() {
    let world = World::new();
    std::fs::create_dir(world.folder.path("parts")).unwrap();
    world.folder.write("parts/base.yaml", blocks("now"));
    world.folder.write("parts/rules.cedar", "");
    world.folder.write(
        "policy.yaml",
        "hushspec: \"0.1.0\"\nname: mine\nextends: parts/base.yaml\nchio:\n  rules: {file: parts/rules.cedar}\n",
    );
    let server = world.serve("--policy policy.yaml");
    let token = world.token("parts-1", vec![grant("echo"), grant("now")]);
    assert_eq!(echo(&server, &token).1, None);
    world.folder.write(
        "parts/rules.cedar",
        "forbid(principal, action, resource == Tool::\"demo/echo\");\n",
    );
    says(&server, &format!("policy reloaded: mine {}", hash(&world, "policy.yaml")), 1);
    assert_eq!(echo(&server, &token).1.as_deref(), Some("rules"));
    world.folder.write("parts/rules.cedar", "");
    says(&server, "policy reloaded: mine ", 2);
    world.folder.write("parts/base.yaml", blocks("echo"));
    says(&server, &format!("policy reloaded: mine {}", hash(&world, "policy.yaml")), 1);
    assert_eq!(echo(&server, &token).1.as_deref(), Some("tool-access"));

    // Also those that it did not name when it was started, and those that were never readable.
    world.folder.write("policy.yaml", "hushspec: \"0.1.0\"\nname: mine\nextends: parts/new.yaml\n");
    says(&server, "policy.yaml:3:10: `extends`: `parts/new.yaml`: there is no such file", 1);
    world.folder.write("parts/new.yaml", "hushspec: 3\n");
    says(&server, "parts/new.yaml:1:11: ", 1);
    world.folder.write("parts/new.yaml", blocks("sleep"));
    says(&server, &format!("policy reloaded: mine {}", hash(&world, "policy.yaml")), 1);
    assert_eq!(echo(&server, &token).1, None);
    world.folder.write("parts/new.yaml", blocks("echo"));
    says(&server, &format!("policy reloaded: mine {}", hash(&world, "policy.yaml")), 1);
    assert_eq!(echo(&server, &token).1.as_deref(), Some("tool-access"));
}

#[test]
fn a_policy_that_is_read_anew_gives_nobody_a_new_allowance() {
    let limit = "hushspec: \"0.1.0\"\nname: mine\nrules:\n  velocity: {max_requests_per_agent: 2, window_secs: 86400}\n";
    let (world, server) = served(limit, "");
    let token = world.token("allowance-1", vec![grant("echo")]);
    assert_eq!(echo(&server, &token).1, None);
    world.folder.write("policy.yaml", format!("{limit}  tool_access: {{block: [now]}}\n"));
    says(&server, "policy reloaded: mine", 1);
    assert_eq!(echo(&server, &token).1, None);
    assert_eq!(echo(&server, &token).1.as_deref(), Some("velocity"));
    server.signal("HUP");
    says(&server, "policy reloaded: mine", 2);
    assert_eq!(echo(&server, &token).1.as_deref(), Some("velocity"));
}

#[test]
fn a_policy_on_trial_may_change_as_well() {
    let world = World::new();
    world.folder.write("trial.yaml", blocks("echo"));
    let server = world.serve("--shadow-policy trial.yaml");
    let token = world.token("trial-change-1", vec![grant("echo")]);
    let said = |server: &Server| {
        let response = server.connect().call("1", &token, "echo", json!({"text": "hi"}));
        assert_eq!(written(&response.result)["status"], "ok");
        response.receipt.evidence[0].details.clone().unwrap()
    };
    let first = hash(&world, "trial.yaml");
    assert!(said(&server).starts_with(&format!("{first} would deny: tool-access")));
    world.folder.write("trial.yaml", "no");
    says(&server, &format!("chio: shadow policy not reloaded, mine {first} stays:"), 1);
    assert!(said(&server).starts_with(&format!("{first} would deny: tool-access")));
    world.folder.write("trial.yaml", blocks("now"));
    let second = hash(&world, "trial.yaml");
    says(&server, &format!("chio: shadow policy reloaded: mine {second}"), 1);
    assert_eq!(said(&server), format!("{second} would allow"));
}

#[test]
fn under_load_every_call_is_judged_by_one_policy_as_a_whole() {
    const FLIPS: usize = 12;
    const CALLERS: usize = 4;
    let policies = [blocks("echo"), blocks("now")];
    let (world, server) = served(&policies[0], "");
    let hashes = policies.each_ref().map(|policy| {
        world.folder.write("one.yaml", policy);
        hash(&world, "one.yaml")
    });
    let token = world.token("load-1", vec![grant("echo"), grant("now")]);
    let done = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                scope.spawn(|| {
                    let (mut wire, mut seen) = (server.connect(), [0; 2]);
                    while !done.load(Ordering::Relaxed) {
                        for (tool, arguments) in
                            [("echo", json!({"text": "hi"})), ("now", json!({}))]
                        {
                            let response = wire.call("x", &token, tool, arguments);
                            let receipt = &response.receipt;
                            let judge = hashes
                                .iter()
                                .position(|hash| *hash == receipt.policy_hash)
                                .unwrap();
                            let ran = written(&response.result)["status"] == "ok";
                            assert_eq!(ran, (tool == "echo") == (judge == 1), "{receipt:?}");
                            assert!(ran || denied_by(receipt) == "tool-access");
                            seen[judge] += 1;
                        }
                    }
                    seen
                })
            })
            .collect();
        for flip in 1..=FLIPS {
            world.folder.write("policy.yaml", &policies[flip % 2]);
            server.signal("HUP");
            let told = format!("policy reloaded: mine {}", hashes[flip % 2]);
            says(&server, &told, flip.div_ceil(2));
        }
        done.store(true, Ordering::Relaxed);
        let ended = callers.into_iter().map(|caller| caller.join().unwrap());
        ended.fold([0; 2], |sum, seen| [sum[0] + seen[0], sum[1] + seen[1]])
    });
    assert!(seen.iter().all(|calls| *calls > 20), "{seen:?}");
    world.audit();
}
