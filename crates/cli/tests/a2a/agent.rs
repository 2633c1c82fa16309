//! A2A agents as our tools.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::support::World;

/// What the tool answered, from the output of `chio call`.
fn answered(text: &str) -> Value {
    serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_skills_of_an_agent_are_tools_for_mcp_clients() {
    let world = World::new();
    let agent = world.up("there", "");
    let target = format!("{}/strict", agent.base);
    let here = world.start(
        &[
            "a2a",
            "serve",
            "--target",
            &target,
            "--http",
            "127.0.0.1:0",
            "--data",
            "here",
            "--anonymous",
            "default",
            "--server-id",
            "friend",
        ],
        "here",
    );
    world.line("tools list --data here --server friend").ends(0).says("friend echo");
    let call = |arguments: &Value| {
        let run = world.run(&["call", "--data", "here", "friend", "echo", &arguments.to_string()]);
        answered(&run.ends(0).stdout)
    };
    let sent = call(&json!({"data": {"text": "hello"}}));
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    assert_eq!(sent["task"]["artifacts"][0]["parts"][0]["data"], json!({"text": "hello"}));
    let later = call(&json!({"message": "hello", "return_immediately": true}));
    let id = later["task"]["id"].clone();
    assert_eq!(later["task"]["status"]["state"], "TASK_STATE_WORKING");
    drop(here);

    // The task is known after a restart, and only to its own tool.
    let _here = world.start(
        &[
            "a2a",
            "serve",
            "--target",
            &target,
            "--http",
            "127.0.0.1:0",
            "--data",
            "here",
            "--anonymous",
            "default",
            "--server-id",
            "friend",
        ],
        "here",
    );
    let ended = call(&json!({"get_task": {"id": id}}));
    assert_eq!(ended["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{ended}");
    let other = json!({"get_task": {"id": id}}).to_string();
    world.run(&["call", "--data", "here", "friend", "now", &other]).ends(1);
    let receipts = world.receipts("here");
    assert_eq!(receipts.len(), 4);
    let hops = &receipts[0]["metadata"]["chio"]["bridge"]["trace"]["hops"];
    assert_eq!(hops[0]["protocol"], "mcp");
    assert_eq!(receipts[0]["metadata"]["chio"]["bridge"]["targetProtocol"], "a2a");
    world.audit("here");
    world.audit("there");
}

#[test]
fn one_caller_cannot_follow_up_the_task_of_another() {
    let world = World::new();
    let agent = world.up("there", "");
    // Every path begins in the folder of the file, once.
    std::fs::create_dir(world.folder.path("agents")).unwrap();
    for name in ["alice", "bob"] {
        world.folder.write(&format!("agents/{name}"), format!("{}\n", name.repeat(8)));
    }
    world.folder.write(
        "agents/chio.yaml",
        format!(
            "store: s\nservers: [{{id: friend, a2a: {{target: \"{}\", bearer_file: alice}}}}]\n\
             listeners:\n  http: {{listen: \"127.0.0.1:0\", tokens: [{{name: alice, file: alice}}, \
             {{name: bob, file: bob}}]}}\nedges: {{mcp: {{}}}}\n",
            agent.base
        ),
    );
    let here = world.start(&["serve", "--config", "agents/chio.yaml"], "agents/s");
    let url = format!("{}/mcp", here.base);
    let call = |who: &str, arguments: &Value| {
        let (token, arguments) = (format!("agents/{who}"), arguments.to_string());
        world.run(&["call", "--url", &url, "--bearer-file", &token, "friend", "echo", &arguments])
    };
    let later = call("alice", &json!({"message": "mine", "return_immediately": true})).ends(0);
    let id = answered(&later.stdout)["task"]["id"].clone();
    let others = call("bob", &json!({"get_task": {"id": id}})).ends(1);
    assert!(!others.stdout.contains("mine") && !others.stderr.contains("mine"), "{others:?}");
    call("bob", &json!({"cancel_task": {"id": id}})).ends(1);
    call("alice", &json!({"get_task": {"id": id}})).ends(0).says("COMPLETED");
}

/// An agent of a tenant, with one skill. It answers only a client that asks for its card.
fn tenant() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let card = json!({
        "name": "Partner", "description": "An agent", "version": "1.0.0",
        "supportedInterfaces": [{"url": base, "protocolBinding": "JSONRPC",
            "protocolVersion": "1.0", "tenant": "tenant-alpha"}],
        "capabilities": {}, "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "research", "name": "Research", "description": "Looks things up",
            "tags": ["x"]}],
    });
    let body = card.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
            );
        }
    });
    base
}

// covers: A2A-030, A2A-032, A2A-033
#[test]
fn the_command_of_the_documents_serves_the_skills_of_a_partner() {
    let world = World::new();
    let target = tenant();
    world.line("key new --out manifest.key").ends(0);
    let line = format!(
        "a2a serve --target {target} --manifest-key ./manifest.key --partner design-partner-a \
         --required-tenant tenant-alpha --require-skill research --data here \
         --http 127.0.0.1:0 --anonymous default"
    );
    let _here = world.start(&line.split_whitespace().collect::<Vec<_>>(), "here");
    let id = format!("a2a:{}", target.strip_prefix("http://").unwrap());
    let listed = world.run(&["tools", "list", "--data", "here", "--server", &id, "--json"]);
    let listed = listed.ends(0).json();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1);
    assert_eq!(listed["tools"][0]["name"], "research");
    let other = world.run(&["tools", "list", "--data", "here", "--server", "a2a:other"]).ends(1);
    other.complains("there is no server `a2a:other` here");
}

// covers: A2A-031, A2A-032
#[test]
fn an_mcp_client_that_starts_commands_has_the_skills_as_tools() {
    let world = World::new();
    let agent = world.up("there", "");
    world.line("key new --out manifest.key").ends(0);
    let target = format!("{}/strict", agent.base);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "echo", "arguments": {"data": {"text": "hello"}}}});
    let input = format!("{hello}\n{ready}\n{call}\n");
    let words = [
        "mcp",
        "serve",
        "--protocol",
        "a2a",
        "--target",
        &target,
        "--manifest-key",
        "./manifest.key",
        "--data",
        "here",
    ];
    let run = world.run_with(&words, input.as_bytes()).ends(0);
    let answer = run.stdout.lines().find(|line| line.contains("\"id\":2")).unwrap();
    assert!(answer.contains("TASK_STATE_COMPLETED"), "{answer}");
    let receipts = world.receipts("here");
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0]["decision"]["verdict"], "allow");
    for (words, expected) in [
        (vec!["mcp", "serve", "--protocol", "a2a"], "--target"),
        (vec!["mcp", "serve", "--target", &*target, "--", "true"], "--protocol a2a"),
        (vec!["mcp", "serve"], "COMMAND"),
        (vec!["a2a", "serve"], "--target"),
        (vec!["mcp", "serve", "--bearer-file", "token", "--", "true"], "--target"),
    ] {
        world.run(&words).ends(2).complains(expected);
    }
}

#[test]
fn a_task_that_failed_there_has_failed_here_for_clients_of_both_protocols() {
    let world = World::new();
    world.folder.write("t", "0123456789abcdef0123456789abcdef\n");
    // The main card says what the agent asks for, so that it is shown it.
    world.folder.write(
        "chio.yaml",
        "store: there\nservers: [{id: demo}]\nlisteners:\n  http: {listen: \"127.0.0.1:0\", \
         tokens: [{name: alice, file: t}]}\nedges: {mcp: {}, a2a: {}}\n",
    );
    let agent = world.start(&["serve"], "there");
    let line = format!(
        "a2a serve --target {} --bearer-file t --http 127.0.0.1:0 --data here --anonymous default \
         --server-id friend --url https://public.example/agent/",
        agent.base
    );
    let here = world.start(&line.split_whitespace().collect::<Vec<_>>(), "here");
    let failed = here.send("note_get", &json!([{"text": "nothing"}]));
    assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED", "{failed}");
    assert!(failed["status"]["message"]["parts"][0]["text"].is_string(), "{failed}");
    let call = |arguments: &Value| {
        world.run(&["call", "--data", "here", "friend", "note_get", &arguments.to_string()])
    };
    let run = call(&json!({"message": "nothing"})).ends(3);
    let why = run.stderr.lines().find(|line| !line.starts_with("as: "));
    assert_eq!(why, Some("there is no note of this name"), "why comes first: {run:?}");
    // A client that asks how it went is answered.
    let task = run.stderr.lines().find(|line| line.starts_with('{')).map(answered).unwrap();
    let id = &task["task"]["id"];
    call(&json!({"get_task": {"id": id}})).ends(0).says("TASK_STATE_FAILED");
    let sent = here.send("echo", &json!([{"text": "hello"}]));
    assert_eq!(sent["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    for receipt in world.receipts("here") {
        assert_eq!(receipt["decision"]["verdict"], "allow", "the call itself went well");
    }
    let card = here.request("GET", "/strict/.well-known/agent-card.json", "", "").body;
    let url = &card["supportedInterfaces"][0]["url"];
    assert_eq!(url, "https://public.example/agent/strict");
}

#[test]
fn an_agent_whose_card_is_not_as_expected_is_refused_and_why_is_said() {
    let world = World::new();
    let agent = world.up("there", "");
    let serve = |options: &str| {
        let line = format!(
            "a2a serve --target {} --http 127.0.0.1:0 --data here --anonymous default {options}",
            agent.base
        );
        world.line(&line)
    };
    serve("--require-skill research").ends(2).complains("research");
    serve("--required-tenant tenant-alpha").ends(2).complains("tenant-alpha");
    serve("--require-scheme oauthAuth").ends(2).complains("oauthAuth");
    serve("--allow-origin https://agent.example.com").ends(2).complains("agent.example.com");
    let nobody = "a2a serve --target http://127.0.0.1:9 --http 127.0.0.1:0 --data here";
    world.line(nobody).ends(2).complains("a2a:127.0.0.1:9");
    let plain = "a2a serve --target http://agent.example.com --http 127.0.0.1:0 --data here";
    world.line(plain).ends(2).complains("https");
}

#[test]
fn credentials_go_to_another_origin_than_the_card_only_where_that_is_allowed() {
    let world = World::new();
    world.folder.write("t", "0123456789abcdef0123456789abcdef\n");
    // An agent whose card sends its clients to another one.
    let other = world.up("other", "");
    world.folder.write(
        "chio.yaml",
        format!(
            "store: there\nservers: [{{id: demo}}]\nlisteners:\n  http: {{listen: \"127.0.0.1:0\", \
             anonymous: default}}\nedges: {{mcp: {{}}, a2a: {{url: \"{}\"}}}}\n",
            other.base
        ),
    );
    let agent = world.start(&["serve"], "there");
    let line = |options: &str| {
        let base = &agent.base;
        format!(
            "a2a serve --target {base} --http 127.0.0.1:0 --data here --anonymous default {options}"
        )
    };
    let refused =
        ["--bearer-file t", "--header-file X-Key=t", "--basic alice=t", "--query-file k=t"];
    for secret in refused {
        let run = world.line(&line(secret)).ends(2);
        let run = run.complains("of the card's own origin or an allowed one");
        let run = run.complains(&format!("found `{}`", other.base)).complains("--allow-origin");
        assert!(!run.stderr.contains("0123456789abcdef"), "{run:?}");
    }
    let allowed = format!("--bearer-file t --allow-origin {}", other.base);
    for options in ["", &allowed] {
        let words = line(options);
        let here = world.start(&words.split_whitespace().collect::<Vec<_>>(), "here");
        let sent = here.send("echo", &json!([{"text": "hello"}]));
        assert_eq!(sent["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    }
}

#[test]
fn an_agent_in_the_configuration_is_checked_by_the_doctor_and_served() {
    let world = World::new();
    let agent = world.up("there", "");
    world.folder.write(
        "chio.yaml",
        format!(
            "store: s\nservers:\n  - id: demo\n  - a2a: {{target: \"{}\"}}\nlisteners:\n  http: \
             {{listen: \"127.0.0.1:0\", anonymous: default}}\nedges: {{mcp: {{}}, a2a: {{name: Both}}}}\n",
            agent.base
        ),
    );
    let id = format!("a2a:{}", agent.base.strip_prefix("http://").unwrap());
    world.line("doctor").ends(0).says(&id);
    let both = world.start(&["serve"], "s");
    world.run(&["tools", "list", "--data", "s", "--server", &id]).ends(0).says("echo");
    let message = json!({"message": "hello"}).to_string();
    world.run(&["call", "--data", "s", &id, "echo", &message]).ends(0).says("COMPLETED");
    // Both servers have an echo: their skills are told apart.
    let card = both.request("GET", "/.well-known/agent-card.json", "", "").body;
    let skills = card["skills"].as_array().unwrap();
    let qualified = format!("{id}::echo");
    assert!(skills.iter().any(|skill| skill["id"] == qualified.as_str()), "{card}");
    assert_eq!(card["name"], "Both");
}
