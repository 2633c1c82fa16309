//! Who comes in over HTTP, and what they may do.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::TcpStream;
use std::time::Duration;

use chio_core::capability::CapabilityToken;
use chio_net::address::AddressRules;
use chio_net::client::{ClientOptions, HttpClient, Request};
use chio_testkit::{key, token};
use serde_json::{Value, json};

use crate::support::World;
use crate::wrapped::serve;

/// What a request with these headers is answered: its status, and its first message.
fn post(url: &str, headers: &[(&str, &str)], message: &Value) -> (u16, Option<Value>, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let rules = AddressRules::public_only().with_loopback();
    let client = HttpClient::new(ClientOptions { rules, ..ClientOptions::default() }).unwrap();
    let mut request = Request::post_json(url, message.to_string())
        .with_header("accept", "application/json, text/event-stream")
        .unwrap()
        .within(Duration::from_secs(60));
    for (name, value) in headers {
        request = request.with_header(name, value).unwrap();
    }
    let answer = runtime.block_on(client.send(request)).unwrap();
    let session = answer.headers.get("mcp-session-id").map(|it| it.to_str().unwrap().to_owned());
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back();
    let message = serde_json::from_str(data.unwrap_or(&text)).ok();
    (answer.status.as_u16(), message, session.unwrap_or_default())
}

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}})
}

/// A session that is opened with these headers, and the result of a call in it.
fn call(url: &str, headers: &[(&str, &str)], tool: &str, arguments: &Value) -> Value {
    let (status, begun, session) = post(url, headers, &hello());
    assert_eq!(status, 200, "{begun:?}");
    let headers = [headers, &[("mcp-session-id", session.as_str())]].concat();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(url, &headers, &ready).0, 202);
    let params = json!({"name": tool, "arguments": arguments});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    let (_, answer, _) = post(url, &headers, &call);
    answer.unwrap()["result"].clone()
}

/// A token of the store for the fixture's tools.
fn capability(world: &World, id: &str, tool: &str) -> CapabilityToken {
    use chio_kernel::{Clock, SystemClock};
    let authority = world.folder.read_key("s/authority.key");
    let mut grant = token::grant(tool);
    "fixture".clone_into(&mut grant.server_id);
    let now = SystemClock::default().unix_seconds();
    token::token(&authority, key(9).public_key(), id, vec![grant], now)
}

// covers: WIRE-048, WIRE-055, WIRE-056
#[test]
fn a_capability_in_a_header_says_what_its_holder_may_do() {
    let world = World::new();
    let server = serve(&world, &[]);
    let url = server.endpoint();
    let token = serde_json::to_string(&capability(&world, "cap-own", "echo")).unwrap();
    let own = [("x-chio-capability", token.as_str())];
    let result = call(&url, &own, "echo", &json!({"text": "mine"}));
    assert_ne!(result["isError"], true, "{result}");
    let result = call(&url, &own, "add", &json!({"a": 1, "b": 2}));
    assert_eq!(result["isError"], true, "{result}");
    let receipts = world.receipts("s");
    assert_eq!(receipts.len(), 2);
    assert!(receipts.iter().all(|it| it["capability_id"] == "cap-own"), "{receipts:?}");
    let subject = key(9).public_key().to_hex();
    assert!(
        receipts.iter().all(|it| it["metadata"]["attribution"]["subject_key"] == *subject),
        "{receipts:?}"
    );
}

#[test]
fn a_capability_of_somebody_whom_nobody_trusts_opens_no_session() {
    let world = World::new();
    let server = serve(&world, &[]);
    let url = server.endpoint();
    let mut forged = capability(&world, "cap-forged", "echo");
    forged.issuer = key(7).public_key().clone();
    let forged = serde_json::to_string(&forged).unwrap();
    let (status, answer, session) = post(&url, &[("x-chio-capability", &forged)], &hello());
    assert_eq!((status, session.as_str()), (401, ""), "{answer:?}");
    assert!(world.receipts("s").is_empty());
}

#[test]
fn each_token_is_a_caller_of_its_own_who_stays_the_same() {
    let world = World::new();
    let subject_of = |token: &str| {
        world.folder.write("t", token);
        let server = serve(&world, &["--auth-token-file", "t"]);
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        call(&server.endpoint(), &headers, "echo", &json!({"text": "who am I"}));
        let receipt = world.receipts("s").remove(0);
        let subject = receipt["metadata"]["attribution"]["subject_key"].as_str().unwrap();
        (subject.to_owned(), receipt["capability_id"].as_str().unwrap().to_owned())
    };
    let first = subject_of("0123456789abcdef0001");
    let other = subject_of("0123456789abcdef0002");
    assert_ne!(first.0, other.0);
    // The next time, the same caller has the same capability.
    assert_eq!(subject_of("0123456789abcdef0001"), first);
}

#[test]
fn whoever_is_on_this_machine_comes_in_only_where_that_was_said() {
    let world = World::new();
    let mut server = serve(&world, &[]);
    assert_eq!(post(&server.endpoint(), &[], &hello()).0, 401);
    server.end();
    let mut server = serve(&world, &["--anonymous", "default"]);
    let result = call(&server.endpoint(), &[], "echo", &json!({"text": "anybody"}));
    assert_ne!(result["isError"], true, "{result}");
    server.end();
    // Bound to one capability, they have exactly that.
    let token = serde_json::to_string(&capability(&world, "cap-any", "echo")).unwrap();
    world.folder.write("any.json", token);
    let server = serve(&world, &["--anonymous", "any.json"]);
    let result = call(&server.endpoint(), &[], "echo", &json!({"text": "anybody"}));
    assert_ne!(result["isError"], true, "{result}");
    let result = call(&server.endpoint(), &[], "add", &json!({"a": 1, "b": 2}));
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(world.receipts("s")[0]["capability_id"], "cap-any");
}

#[test]
fn a_session_is_of_no_use_to_another_caller() {
    let world = World::new();
    world.folder.write("t", "0123456789abcdef0001\n");
    let server = serve(&world, &["--auth-token-file", "t"]);
    let url = server.endpoint();
    let own = ("authorization", "Bearer 0123456789abcdef0001");
    let (status, _, session) = post(&url, &[own], &hello());
    assert_eq!(status, 200);
    let token = serde_json::to_string(&capability(&world, "cap-thief", "echo")).unwrap();
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let thief = [("x-chio-capability", token.as_str()), ("mcp-session-id", session.as_str())];
    let (status, _, _) = post(&url, &thief, &ping);
    assert!(status == 403 || status == 404, "{status}");
    assert_eq!(post(&url, &[own, ("mcp-session-id", &session)], &ping).0, 200);
}

/// The lines of an answer to a bare request, once its first says that it is well.
fn answer_to(url: &str, method: &str, session: &str, body: &str) -> Lines<BufReader<TcpStream>> {
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} /mcp HTTP/1.1\r\nhost: {address}\r\nmcp-session-id: {session}\r\n\
         accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut lines = BufReader::new(stream).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "HTTP/1.1 200 OK");
    lines
}

#[test]
fn the_end_answers_what_runs_and_waits_for_nobody_who_only_listens() {
    let world = World::new();
    let mut server = serve(&world, &["--anonymous", "default"]);
    let url = server.endpoint();
    let (_, _, session) = post(&url, &[], &hello());
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    post(&url, &[("mcp-session-id", &session)], &ready);
    let _listening = answer_to(&url, "GET", &session, "");
    let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": {"name": "slow", "arguments": {"ms": 1500}}});
    // Its answer begins as a stream while the call runs.
    let running = answer_to(&url, "POST", &session, &call.to_string());
    server.end();
    let rest: Vec<String> = running.map_while(Result::ok).collect();
    assert!(rest.iter().any(|line| line.contains("\"result\"")), "{rest:?}");
    assert_eq!(world.receipts("s").len(), 1);
}

#[test]
fn a_revoked_capability_is_not_handed_out_again() {
    let world = World::new();
    let server = serve(&world, &["--anonymous", "default"]);
    let url = server.endpoint();
    call(&url, &[], "echo", &json!({"text": "a"}));
    let handed = world.receipts("s")[0]["capability_id"].as_str().unwrap().to_owned();
    world.line(&format!("capability revoke {handed} --data s")).ends(0);
    chio_testkit::process::until("the revocation to be seen", || {
        let (_, answer, session) = post(&url, &[], &hello());
        let headers = [("mcp-session-id", session.as_str())];
        post(&url, &headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let params = json!({"name": "echo", "arguments": {"text": "a"}});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        let refused = answer.is_some_and(|it| it.get("error").is_some());
        let (_, answer, _) = post(&url, &headers, &call);
        let answer = answer.unwrap_or_default();
        let denied = answer["result"]["isError"] == true || answer.get("error").is_some();
        (refused || denied).then_some(())
    });
    let tokens = world.receipts("s").into_iter().filter(|it| it["decision"]["verdict"] == "allow");
    assert!(tokens.into_iter().all(|it| it["capability_id"] == *handed));
}
