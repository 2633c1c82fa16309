//! Our tools for A2A clients.

use chio_testkit::key;
use chio_testkit::process::{mcp_fixture, until};
use chio_testkit::skip;
use serde_json::{Value, json};

use crate::support::{World, message};

#[test]
fn a_skill_is_called_and_denied_and_each_leaves_its_receipt() {
    let world = World::new();
    let agent = world.up("s", "");
    let card = agent.request("GET", "/.well-known/agent-card.json", "", "").body;
    let skills = card["skills"].as_array().unwrap();
    assert!(skills.iter().any(|skill| skill["id"] == "echo"));
    assert!(skills.iter().all(|skill| skill["id"] != "needs_approval"), "it is withheld");
    let task = agent.send("echo", &json!([{"text": "hello"}]));
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    let arguments = json!({"name": "k", "text": "AKIAQ3EGRT5KLMN2WXYZ"});
    let denied = agent.send("note_put", &json!([{"data": arguments}]));
    assert_eq!(denied["status"]["state"], "TASK_STATE_REJECTED", "{denied}");
    let failed = agent.send("note_get", &json!([{"data": {"name": "nothing"}}]));
    assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED", "{failed}");
    let receipts = world.receipts("s");
    for (task, receipt) in [task, denied, failed].iter().zip(&receipts) {
        assert_eq!(task["metadata"]["chio"]["receiptId"], receipt["id"]);
    }
    assert_eq!(receipts.len(), 3);
    drop(agent);
    world.audit("s");
}

#[test]
fn a_task_for_later_survives_a_restart_runs_once_and_its_name_never_comes_again() {
    let world = World::new();
    let agent = world.up("s", "");
    let later = json!({"message": {"role": "user", "parts": [{"type": "text", "text": "hello"}]}});
    let defer = || agent.call("/skills/echo", "message/stream", &later)["result"].clone();
    let (first, cancelled) = (defer(), defer());
    assert_eq!(first["status"], "working");
    assert_eq!(first["metadata"]["chio"]["receiptPending"], true);
    assert_eq!(world.receipts("s").len(), 0);
    let ended = agent.call("/", "CancelTask", &json!({"id": cancelled["id"]}));
    assert_eq!(ended["result"]["status"]["state"], "TASK_STATE_CANCELED", "{ended}");
    drop(agent);

    let agent = world.up("s", "");
    for _ in 0..2 {
        let task = agent.call("/", "task/get", &json!({"taskId": first["id"]}))["result"].clone();
        assert_eq!(task["status"], "completed", "{task}");
    }
    let ended = agent.call("/", "GetTask", &json!({"id": cancelled["id"]}))["result"].clone();
    assert_eq!(ended["status"]["state"], "TASK_STATE_CANCELED", "it is still there");
    let receipts = world.receipts("s");
    let verdicts: Vec<&Value> = receipts.iter().map(|it| &it["decision"]["verdict"]).collect();
    assert_eq!(verdicts, ["cancelled", "allow"]);
    assert_eq!(receipts[0]["id"], ended["metadata"]["chio"]["receiptId"]);
    let again = agent.send("echo", &json!([{"text": "again"}]));
    let number = |task: &Value| {
        let id = task["id"].as_str().unwrap().strip_prefix("a2a-task-").unwrap().to_owned();
        id.parse::<u64>().unwrap()
    };
    assert!(number(&again) > number(&cancelled), "{again}");
    let ended = agent.call("/", "CancelTask", &json!({"id": again["id"]}));
    assert_eq!(ended["error"]["code"], -32002, "{ended}");
}

// covers: BRIDGE-160
#[test]
fn a_revoked_capability_is_denied_with_a_receipt_and_reads_no_task_of_its_subject() {
    let world = World::new();
    world.folder.write_key("agent.key", &key(9));
    let agent = world.up("s", "");
    let issue = |id: &str| {
        let line =
            format!("capability issue --data s --subject agent.key --id {id} --grant demo/echo");
        world.line(&line).ends(0).json().to_string()
    };
    let (good, bad) = (issue("cap-good"), issue("cap-bad"));
    let ask = |method: &str, params: &Value, header: &str| {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let headers = format!("A2A-Version: 1.0\r\n{header}\r\n");
        agent.request("POST", "/skills/echo", &headers, &body.to_string())
    };
    let by = |token: &str| format!("X-Chio-Capability: {token}");
    let later = json!({"message": {"role": "user", "parts": [{"type": "text", "text": "hello"}]}});
    let task = ask("message/stream", &later, &by(&good)).body["result"].clone();
    let id = json!({"id": task["id"]});
    world.line("capability revoke --data s cap-bad").ends(0);
    // Another process has revoked it, of which the agent learns in a moment.
    until("a refusal", || (ask("ListTasks", &json!({}), &by(&bad)).status == 401).then_some(()));
    for method in ["GetTask", "CancelTask", "ListTasks"] {
        let params = if method == "ListTasks" { json!({}) } else { id.clone() };
        let refused = ask(method, &params, &by(&bad));
        assert_eq!(refused.status, 401, "{method} {}", refused.body);
    }
    let send = message(&json!([{"text": "hello"}]));
    let denied = ask("SendMessage", &send, &by(&bad)).body["result"]["task"].clone();
    assert_eq!(denied["status"]["state"], "TASK_STATE_REJECTED", "{denied}");
    // A client that shows a damaged capability is not taken for one that shows none.
    let damaged = good.get(..good.len() - 1).unwrap();
    assert_eq!(ask("SendMessage", &send, &format!("Authorization: Bearer {damaged}")).status, 401);
    let id = json!({"taskId": task["id"]});
    let done = ask("task/get", &id, &format!("Authorization: Bearer {good}")).body;
    assert_eq!(done["result"]["status"], "completed", "{done}");
    assert_eq!(world.receipts("s").len(), 2);
}

#[test]
fn behind_a_proxy_an_agent_that_asks_for_a_token_goes_by_the_host_of_its_cards() {
    let world = World::new();
    world.folder.write("t", "0123456789abcdef0123456789abcdef\n");
    for (who, public) in [("tokens: [{name: alice, file: t}]", 200), ("anonymous: default", 403)] {
        let config = format!(
            "store: s\nservers: [{{id: demo}}]\nlisteners:\n  http: {{listen: \"127.0.0.1:0\", {who}}}\n\
             edges: {{mcp: {{}}, a2a: {{url: \"https://public.example/agent/\"}}}}\n"
        );
        world.folder.write("chio.yaml", config);
        let agent = world.start(&["serve"], "s");
        let card =
            |host: &str| agent.request_of(host, ("GET", "/.well-known/agent-card.json"), "", "");
        assert_eq!(card("public.example").status, public, "{who}");
        assert_eq!(card("evil.example").status, 403, "{who}");
        let own = agent.base.strip_prefix("http://").unwrap();
        let url = &card(own).body["supportedInterfaces"][0]["url"];
        assert_eq!(url, "https://public.example/agent", "{who}");
    }
}

#[test]
fn whoever_shows_nothing_is_not_let_in_where_a_token_is_asked_for() {
    let world = World::new();
    world.folder.write("t", "0123456789abcdef0123456789abcdef\n");
    world.folder.write(
        "chio.yaml",
        "store: s\nservers: [{id: demo}]\nlisteners:\n  http: {listen: \"127.0.0.1:0\", \
         tokens: [{name: alice, file: t}]}\nedges: {mcp: {}, a2a: {}}\n",
    );
    let agent = world.start(&["serve"], "s");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": message(&json!([{"text": "hello"}]))});
    for (headers, status) in [
        ("A2A-Version: 1.0\r\n", 401),
        ("A2A-Version: 1.0\r\nAuthorization: Bearer no-such-token-of-anybody\r\n", 401),
        ("A2A-Version: 1.0\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n", 200),
    ] {
        let answer = agent.request("POST", "/skills/echo", headers, &body.to_string());
        assert_eq!(answer.status, status, "{} {}", answer.head, answer.body);
    }
    assert_eq!(world.receipts("s").len(), 1);
    let card = agent.request("GET", "/strict/.well-known/agent-card.json", "", "").body;
    assert!(card["securitySchemes"].as_object().is_some_and(|it| !it.is_empty()), "{card}");
}

// covers: CROSS-017
#[test]
fn an_a2a_client_calls_a_tool_of_a_real_mcp_server_and_the_tool_knows_the_message() {
    let world = World::new();
    let config = format!(
        "store: s\npolicy: permissive\nservers: [{{id: fixture, command: [\"{}\"]}}]\nlisteners:\n  \
         http: {{listen: \"127.0.0.1:0\", anonymous: default}}\nedges: {{mcp: {{}}, a2a: {{}}}}\n",
        mcp_fixture().display()
    );
    world.folder.write("chio.yaml", config);
    let agent = world.start(&["serve"], "s");
    for (id, kind) in [
        ("tck-complete-task-1", "task"),
        ("tck-message-response", "message"),
        ("tck-input-required-1", "task"),
    ] {
        let mut params = message(&json!([{"text": "go"}]));
        params["message"]["messageId"] = json!(id);
        let answer = agent.call("/skills/tck", "SendMessage", &params);
        assert!(answer["result"].get(kind).is_some(), "{id}: {answer}");
    }
    let receipts = world.receipts("s");
    assert_eq!(receipts.len(), 3);
    for receipt in &receipts {
        let hops = receipt["metadata"]["chio"]["bridge"]["trace"]["hops"].as_array().unwrap();
        let way: Vec<&str> = hops.iter().map(|hop| hop["protocol"].as_str().unwrap()).collect();
        assert_eq!(way.first(), Some(&"a2a"));
        assert!(way.contains(&"mcp"), "{way:?}");
    }
    drop(agent);
    world.audit("s");
}

#[test]
fn every_member_of_the_configuration_has_its_key() {
    let world = World::new();
    let serve = |servers: &str| {
        let config = format!(
            "store: s\nservers: [{{id: demo}}]\nlisteners:\n  http: {{listen: \"127.0.0.1:0\", \
             anonymous: default}}\nedges:\n  a2a: {{name: Tides, description: Knows the sea, \
             version: 2.1.0, servers: [{servers}], http_json: false, accept_missing_version: true, \
             tags: {{echo: [sea]}}, url: \"https://tides.example\", rate: 1000, keep_tasks: 2h, \
             max_open_tasks: 5, max_tasks: 50, max_task_bytes: 100000, max_running: 8, max_body: \
             100000, max_deferred: 1000, max_contexts: 9, max_contexts_of_one: 3, max_callers: 7, \
             remember_callers: 10s}}\n  mcp: {{}}\n"
        );
        world.folder.write("chio.yaml", config);
    };
    serve("elsewhere");
    let refused = world.run(&["serve"]);
    refused.ends(2).complains("expected some of demo, found `elsewhere`");
    serve("demo");
    let agent = world.start(&["serve"], "s");
    let card = agent.request("GET", "/strict/.well-known/agent-card.json", "", "").body;
    assert_eq!((&card["name"], &card["version"]), (&json!("Tides"), &json!("2.1.0")));
    assert_eq!(card["description"], "Knows the sea");
    assert_eq!(card["supportedInterfaces"].as_array().map(Vec::len), Some(1));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": message(&json!([{"text": "hello"}]))});
    let answer = agent.request("POST", "/skills/echo", "", &body.to_string()).body;
    assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
    let large = "x".repeat(200_000);
    assert_eq!(agent.request("POST", "/skills/echo", "", &large).status, 413);
}

// covers: BRIDGE-108
#[test]
fn the_example_runs_as_it_is_written() {
    let has_curl = std::process::Command::new("curl").arg("--version").output().is_ok();
    if !has_curl {
        return skip("the example hello-a2a", "`curl` is not on the PATH");
    }
    let world = World::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hello-a2a/run.sh");
    let mut example = std::process::Command::new("sh");
    example.arg(script).env("CHIO", env!("CARGO_BIN_EXE_chio"));
    example.current_dir(world.folder.root()).env("TMPDIR", world.folder.root());
    let run = chio_testkit::process::Run::of(&mut example, b"");
    run.ends(0).says("TASK_STATE_COMPLETED").says("friend/echo");
}
