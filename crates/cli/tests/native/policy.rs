//! Policies in force: what they stop, what they let pass, and what receipts say of it.

use chio_testkit::process::until;
use chio_testkit::receipts::denied_by;
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::support::{World, written};
use crate::up::up;

/// A secret, in pieces, so that no reader takes it for one that has leaked.
fn secret() -> String {
    ["ghp", "_", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3gH5"].concat()
}

/// The hash that a policy is told by.
#[track_caller]
pub(crate) fn hash(world: &World, policy: &str) -> String {
    let told = world.run(&["policy", "check", policy, "--json"]).ends(0).json();
    told["hash"].as_str().unwrap().to_owned()
}

/// Whether any file of the store, notes aside, has this text in it.
fn store_has(world: &World, text: &str) -> bool {
    let files = std::fs::read_dir(world.folder.path("s")).unwrap().map(|entry| entry.unwrap());
    files.filter(|file| file.file_type().unwrap().is_file()).any(|file| {
        let bytes = std::fs::read(file.path()).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn under_every_built_in_policy_the_demo_tools_work_and_receipts_name_it() {
    for policy in ["default", "strict", "permissive", "code-agent"] {
        let world = World::new();
        let (_server, printed) = up(&world, &["--policy", policy]);
        let hash = hash(&world, policy);
        assert!(printed.contains(&format!("policy      {policy} {hash:.12}, ")), "{printed}");
        let call = |tool: &str, arguments: &str| {
            let token = ".chio/demo/token.json";
            world.run(&["native", "call", "--token", token, "demo", tool, arguments]).ends(0);
        };
        for (tool, arguments) in [
            ("echo", json!({"text": "hello, what is the weather like in Paris?"})),
            ("now", json!({})),
            ("note_put", json!({"name": "todo", "text": "read the log, then write a page"})),
            ("note_get", json!({"name": "todo"})),
            ("note_count", json!({})),
            ("count_to", json!({"n": 3})),
            ("sleep", json!({"ms": 1})),
            ("paid", json!({"text": "a line"})),
        ] {
            call(tool, &arguments.to_string());
        }
        let listed = world.line("receipt list --json").ends(0).json();
        let receipts = listed["receipts"].as_array().unwrap();
        assert_eq!(receipts.len(), 8);
        assert!(receipts.iter().all(|it| it["receipt"]["policy_hash"] == *hash), "{policy}");
    }
}

#[test]
fn a_forbidden_call_is_denied_in_the_name_of_its_guard() {
    let (world, server) = World::served();
    let token = world.token("forbidden-1", vec![grant("note_put"), grant("note_count")]);
    let mut wire = server.connect();
    let text = format!("remember {}", secret());
    let denied = wire.call("1", &token, "note_put", json!({"name": "a", "text": text}));
    assert_eq!(written(&denied.result)["error"]["code"], "policy_denied");
    world.check_receipt(&denied);
    assert_eq!(denied_by(&denied.receipt), "secret-leak");
    assert_eq!(denied.receipt.policy_hash, hash(&world, "default"));
    // It did not run.
    let count = wire.call("2", &token, "note_count", json!({}));
    assert_eq!(written(&count.result)["value"]["notes"], 0);
    let hash = hash(&world, "default");
    assert!(server.stderr().contains(&format!("policy default {hash:.12}, ")));
}

#[test]
fn a_call_that_the_policy_names_waits_and_goes_on_when_it_is_approved() {
    let world = World::new();
    world.folder.write(
        "ask.yaml",
        "hushspec: \"0.1.0\"\nrules:\n  human_in_loop: {require_confirmation: [echo]}\n",
    );
    let _server = world.serve("--policy ask.yaml");
    let token = world.token("ask-1", vec![grant("echo"), grant("now")]);
    let call = world.start_call("a.sock", &token, &["demo", "echo", r#"{"text": "please"}"#]);
    let id = world.waiting("ask-1");
    let row = &world.requests("ask-1")[0];
    assert!(row["request"]["reason"].as_str().unwrap().contains("`echo`"), "{row}");
    world.line(&format!("approvals approve {id} --data s")).ends(0);
    call.end().ends(0).says("please");
    world.check_request("ask-1", "used");
    let receipts = world.receipts("ask-1");
    let said = receipts[0].evidence.iter().find(|it| it.guard_name == "human-in-loop");
    assert!(said.is_some_and(|it| it.verdict), "{receipts:?}");
    // Another tool does not wait, and what is denied does not run.
    world.start_call("a.sock", &token, &["demo", "now"]).end().ends(0);
    let token = world.token("ask-2", vec![grant("echo")]);
    let call = world.start_call("a.sock", &token, &["demo", "echo", r#"{"text": "please"}"#]);
    let id = world.waiting("ask-2");
    world.line(&format!("approvals deny {id} --data s")).ends(0);
    call.end().ends(1).complains("denied: approval");
    world.audit();
}

#[test]
fn a_policy_says_how_long_a_call_waits() {
    let world = World::new();
    world.folder.write(
        "ask.yaml",
        "hushspec: \"0.1.0\"\nrules:\n  human_in_loop:\n    require_confirmation: [echo]\n    \
         timeout_seconds: 1\n",
    );
    let _server = world.serve("--policy ask.yaml");
    let token = world.token("short-1", vec![grant("echo")]);
    let call = world.start_call("a.sock", &token, &["demo", "echo", r#"{"text": "please"}"#]);
    call.end().ends(1).complains("denied: human-in-loop: ").complains("nobody gave it in time");
    world.check_request("short-1", "expired");
}

#[test]
fn secrets_in_arguments_are_kept_nowhere() {
    let world = World::new();
    for policy in ["default", "permissive"] {
        let mut server = world.serve(&format!("--policy {policy}"));
        let token = world.token(policy, vec![grant("echo"), grant("paid")]);
        let mut wire = server.connect();
        // `paid` costs something: before it runs, its intent is written down.
        for tool in ["echo", "paid"] {
            let response = wire.call(tool, &token, tool, json!({"text": secret()}));
            let text = serde_json::to_string(&response).unwrap();
            assert!(!text.contains(&secret()), "{policy} {tool}: {text}");
            let ran = written(&response.result)["status"] == "ok";
            assert_eq!(ran, policy == "permissive", "{text}");
            let id = &response.receipt.id;
            for form in ["", " --json"] {
                let shown = world.line(&format!("receipt show {id} --data s{form}")).ends(0);
                assert!(!shown.stdout.contains(&secret()), "{shown:#?}");
            }
        }
        let exported = world.line("receipt export --data s").ends(0);
        assert!(!exported.stdout.contains(&secret()));
        server.end();
        assert!(!store_has(&world, &secret()), "{policy}");
        assert!(!server.stderr().contains(&secret()));
    }
    // Elsewhere the search finds what it should.
    assert!(store_has(&world, "secret-leak"));
    world.audit();
}

#[test]
fn secrets_in_output_do_not_leave() {
    let world = World::new();
    world.folder.write("open.yaml", "hushspec: \"0.1.0\"\n");
    let mut server = world.serve("--policy open.yaml");
    let token = world.token("output-1", vec![grant("note_put"), grant("note_get")]);
    let put = json!({"name": "key", "text": format!("it is {}", secret())});
    let response = server.connect().call("1", &token, "note_put", put);
    assert_eq!(written(&response.result)["status"], "ok");
    server.end();

    let server = world.serve("");
    let response = server.connect().call("2", &token, "note_get", json!({"name": "key"}));
    let answer = written(&response.result);
    let text = answer["value"]["text"].as_str().unwrap();
    assert!(text.starts_with("it is ") && !text.contains(&secret()), "{text}");
    assert!(!serde_json::to_string(&response).unwrap().contains(&secret()));
}

#[test]
fn a_policy_on_trial_is_recorded_and_stops_nothing() {
    let world = World::new();
    world.folder.write(
        "trial.yaml",
        "hushspec: \"0.1.0\"\nrules:\n  tool_access: {block: [now]}\n  \
         human_in_loop: {require_confirmation: [note_*]}\n",
    );
    let none = "no policy was on trial: `chio up --shadow-policy FILE|NAME` tries one\n";
    let server = world.serve("--shadow-policy trial.yaml");
    assert_eq!(world.line("policy shadowed --data s").ends(0).stdout, none);
    let (in_force, on_trial) = (hash(&world, "default"), hash(&world, "trial.yaml"));
    let token = world.token("trial-1", vec![grant("*")]);
    let mut wire = server.connect();
    let mut ids = Vec::new();
    for tool in ["echo", "now", "now", "note_count"] {
        let arguments = if tool == "echo" { json!({"text": "hi"}) } else { json!({}) };
        let response = wire.call("x", &token, tool, arguments);
        assert_eq!(written(&response.result)["status"], "ok", "{tool}");
        assert_eq!(response.receipt.policy_hash, in_force);
        let first = &response.receipt.evidence[0];
        assert_eq!((first.guard_name.as_str(), first.verdict), ("shadow", true));
        let would = match tool {
            "now" => "would deny: tool-access: ",
            "note_count" => "would ask: human-in-loop: ",
            _ => "would allow",
        };
        let details = first.details.as_ref().unwrap();
        assert!(details.starts_with(&format!("{on_trial} {would}")), "{details}");
        ids.push(response.receipt.id);
    }
    // What the policy in force denies is judged as well.
    let denied = wire.call("x", &token, "echo", json!({"text": secret()}));
    assert_eq!(denied_by(&denied.receipt), "secret-leak");

    let told = world.line("policy shadowed --data s --json").ends(0).json();
    let stop = |would: &str, guard: &str, tool: &str, calls: u64, latest: &str| {
        json!({"would": would, "about": "call", "guard": guard, "tool": tool, "calls": calls,
            "latest_receipt_id": latest})
    };
    let stops = [
        stop("ask", "human-in-loop", "demo/note_count", 1, &ids[3]),
        stop("deny", "tool-access", "demo/now", 2, &ids[2]),
    ];
    let expected = json!({"policies": [{"policy_hash": on_trial, "calls": 5, "would_deny": 2,
        "would_ask": 1, "would_deny_output": 0, "would_redact_output": 0, "stops": stops}]});
    assert_eq!(told, expected);
    let shown = world.line("policy shadowed --data s").ends(0);
    let shown = shown.says(&format!("on trial    {on_trial}\n"));
    let shown = shown.says("judged      5 calls: would deny 2, would ask about 1\n");
    let latest = ids[2].to_string();
    shown.says(&format!("  {}  demo/now\n", latest.trim_matches('"').get(..12).unwrap()));
    // As with receipts, one can ask about a part of them.
    let part = world.line("policy shadowed --data s --tool now --json").ends(0).json();
    assert_eq!(part["policies"][0]["calls"], 2);
    assert_eq!(world.line("policy shadowed --data s --server x").ends(0).stdout, none);
}

#[test]
fn what_a_policy_on_trial_would_do_with_answers_is_counted() {
    let world = World::new();
    world.folder.write("open.yaml", "hushspec: \"0.1.0\"\n");
    world.folder.write(
        "trial.yaml",
        "hushspec: \"0.1.0\"\nextends: default\nrules:\n  tool_access: {block: [echo]}\n",
    );
    let server = world.serve("--policy open.yaml --shadow-policy trial.yaml");
    let token = world.token("answers-1", vec![grant("*")]);
    let mut wire = server.connect();
    let text = format!("it is {}", secret());
    for (tool, arguments) in [
        ("note_put", json!({"name": "key", "text": text})),
        ("note_get", json!({"name": "key"})),
        // It would have had no answer.
        ("echo", json!({"text": text})),
    ] {
        let response = wire.call("x", &token, tool, arguments);
        assert_eq!(written(&response.result)["status"], "ok", "{tool}");
    }
    let told = world.line("policy shadowed --data s --json").ends(0).json();
    let trial = &told["policies"][0];
    let totals = ["calls", "would_deny", "would_deny_output", "would_redact_output"];
    assert_eq!(totals.map(|it| trial[it].as_u64().unwrap()), [3, 2, 0, 1], "{told}");
    let outputs: Vec<_> = trial["stops"].as_array().unwrap().iter().collect();
    let output = outputs.iter().find(|it| it["about"] == "output").unwrap();
    assert_eq!(
        (&output["would"], &output["guard"], &output["tool"], &output["calls"]),
        (&json!("redact"), &json!("secret-leak"), &json!("demo/note_get"), &json!(1))
    );
    let shown = world.line("policy shadowed --data s").ends(0);
    let shown = shown.says("            outputs: would deny 0, would redact 1\n");
    shown.says("redact output  1      secret-leak  ").says("  demo/note_get\n");
}

#[test]
fn a_policy_with_notes_says_so_when_it_is_served() {
    let world = World::new();
    let block = |tool: &str| format!("rules:\n  tool_access: {{block: [{tool}]}}\n");
    world.folder.write("base.yaml", format!("hushspec: \"0.1.0\"\n{}", block("a")));
    let mine = format!("hushspec: \"0.1.0\"\nextends: base.yaml\n{}", block("b"));
    world.folder.write("my notes.yaml", mine);
    let told = world.run(&["policy", "check", "my notes.yaml", "--json"]).ends(0).json();
    let number = told["notes"].as_array().unwrap().len();
    assert!(number > 0, "{told}");
    let (_server, printed) = up(&world, &["--policy", "my notes.yaml"]);
    let noun = if number == 1 { "note" } else { "notes" };
    assert!(printed.contains(&format!(", {number} {noun}:\n")), "{printed}");
    assert!(printed.contains("  chio policy check 'my notes.yaml'\n"), "{printed}");
}

#[test]
fn a_policy_on_trial_counts_for_itself() {
    let world = World::new();
    let limit = "hushspec: \"0.1.0\"\nrules:\n  velocity: {max_requests_per_agent: 2, window_secs: 86400}\n";
    world.folder.write("limit.yaml", limit);
    let server = world.serve("--policy limit.yaml --shadow-policy limit.yaml");
    let token = world.token("twice-1", vec![grant("now")]);
    let mut wire = server.connect();
    let status = |wire: &mut chio_testkit::process::Wire| -> Value {
        written(&wire.call("x", &token, "now", json!({})).result)["status"].clone()
    };
    assert_eq!([status(&mut wire), status(&mut wire), status(&mut wire)], ["ok", "ok", "err"]);
}

#[test]
fn a_policy_hands_the_demo_agent_what_it_says() {
    let world = World::new();
    world.folder.write(
        "hand.yaml",
        "hushspec: \"0.1.0\"\nextends: default\nchio:\n  capabilities:\n    ttl: 1h\n    tools:\n      \
         - {server: demo, tool: now}\n      \
         - {server: demo, tool: note_put, max_invocations: 1, ttl: 5m}\n",
    );
    let (mut server, printed) = up(&world, &["--policy", "hand.yaml"]);
    assert!(printed.contains("token       .chio/demo/token.json: demo/note_put\n"), "{printed}");
    assert!(printed.contains("token       .chio/demo/token-2.json: demo/now\n"), "{printed}");
    // The command that is printed is one that works.
    assert!(printed.contains(" call demo now\n"), "{printed}");
    world.line("call demo now").ends(0).says("unix_seconds");
    world.line("call demo echo {\"text\":\"x\"}").ends(1).complains("Denied");
    let call = |token: &str, tool: &str, arguments: &str| {
        let token = format!(".chio/demo/{token}");
        world.run(&["native", "call", "--token", &token, "demo", tool, arguments])
    };
    let note = r#"{"name": "a", "text": "b"}"#;
    call("token-2.json", "now", "{}").ends(0);
    call("token-2.json", "note_put", note).ends(1);
    call("token.json", "note_put", note).ends(0);
    call("token.json", "note_put", note).ends(1).complains("invocation budget exhausted");
    // The next time the same tokens are there: no agent gets a second allowance by a restart.
    let tokens =
        || ["token.json", "token-2.json"].map(|it| world.folder.read(&format!(".chio/demo/{it}")));
    let before = tokens();
    server.end();
    let (mut server, _) = up(&world, &["--policy", "hand.yaml"]);
    assert_eq!(tokens(), before);
    server.end();
    // Under a policy that hands out nothing, the demo agent may use every tool again.
    let (_server, printed) = up(&world, &[]);
    assert!(printed.contains("token       .chio/demo/token.json: demo/*\n"), "{printed}");
    call("token.json", "echo", r#"{"text": "hi"}"#).ends(0);
    until("a receipt", || (!world.line("receipt list").stdout.is_empty()).then_some(()));
}
