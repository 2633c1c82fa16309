//! How servers behind us start, and how everything ends.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use chio_testkit::process::{Server, mcp_fixture, until};
use serde_json::{Value, json};

use crate::client::Client;
use crate::support::World;

/// A client waits two seconds for the end before it kills; what hangs would take ten and more.
const SOON: Duration = Duration::from_secs(6);

/// A server that answers with the tools of `tools.json`, and never answers a call. It leaves its
/// process id, and that of a process of its own, in `children`; `$1` is run first.
const SCRIPT: &str = r#"
echo $$ >> children
sleep 600 & echo $! >> children
eval "$1"
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'"method":"tools/list"'*)
      echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":'"$(cat tools.json)"'}}' ;;
    *'"method":"tools/call"'*) echo call >> calls ;;
  esac
done
sleep 600
"#;

/// A world with such a server, and the words that serve it.
fn scripted(tools: &Value, first: &str) -> (World, Vec<String>) {
    let world = World::new();
    world.folder.write("server.sh", SCRIPT);
    world.folder.write("tools.json", tools.to_string());
    let words = ["mcp", "serve", "--data", "s", "--server-id", "s", "--", "sh", "server.sh", first];
    (world, words.map(str::to_owned).to_vec())
}

fn one_tool() -> Value {
    json!([{"name": "hang", "inputSchema": {"type": "object"}}])
}

/// Starts a client of it.
fn client(world: &World, words: &[String]) -> Client {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Client::new(&mut world.command(&words))
}

#[test]
fn a_server_is_started_once_for_the_client_that_starts_us() {
    let world = World::new();
    let wrapper = world.wrapper();
    let words = ["mcp", "serve", "--data", "s", "--", wrapper.as_str()];
    for capabilities in [json!({}), json!({"roots": {"listChanged": true}, "sampling": {}})] {
        let mut client = Client::with(&mut world.command(&words), &capabilities);
        assert_ne!(client.call("echo", &json!({"text": "hello"}))["isError"], true);
        client.end();
    }
    assert_eq!(world.children_gone(), 2, "one for each client");
}

#[test]
fn everything_is_gone_soon_when_the_client_leaves_or_ends_us_whatever_is_pending() {
    // Neither the end of its input nor a signal ends this server.
    for signal in [None, Some("TERM")] {
        let (world, words) = scripted(&one_tool(), "trap '' TERM");
        let mut client = client(&world, &words);
        let params = json!({"name": "hang", "arguments": {}});
        client.send(&json!({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params}));
        until("the call to reach the server", || world.folder.path("calls").exists().then_some(()));
        let began = Instant::now();
        match signal {
            Some(signal) => {
                client.server.signal(signal);
                client.server.wait();
            }
            None => drop(client.leave()),
        }
        assert!(began.elapsed() < SOON, "{signal:?}: {:?}", began.elapsed());
        assert_eq!(world.children_gone(), 2, "the server and what it had started");
        let receipts = world.receipts("s");
        assert_eq!(receipts.len(), 1, "{signal:?}");
        assert_ne!(receipts[0]["decision"]["verdict"], "allow", "{signal:?}: {receipts:?}");
        world.line("log audit --data s").ends(0);
        let kernels = world.line("kernel list --data s --json").ends(0).json();
        assert_eq!(kernels["kernels"][0]["open_intents"], 0, "before the end: {kernels}");
    }
}

#[test]
fn a_client_that_leaves_or_ends_us_while_the_server_starts_leaves_nothing_behind() {
    for signal in [None, Some("TERM")] {
        let (world, words) = scripted(&one_tool(), "trap '' TERM; sleep 600");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut client = Client::bare(&mut world.command(&words));
        until("the server to be started", || {
            let children = world.folder.path("children");
            std::fs::read_to_string(children).ok().filter(|it| it.lines().count() == 2)
        });
        let began = Instant::now();
        match signal {
            Some(signal) => {
                client.server.signal(signal);
                client.server.wait();
            }
            None => drop(client.leave()),
        }
        assert!(began.elapsed() < SOON, "{signal:?}: {:?}", began.elapsed());
        assert_eq!(world.children_gone(), 2);
    }
}

#[test]
fn the_time_for_a_start_is_a_setting_and_the_log_tells_that_it_goes_on() {
    let world = World::new();
    let words = ["mcp", "serve", "--data", "s", "--start-timeout", "400ms", "--", "sleep", "600"];
    let run = world.run(&words).ends(2).complains("it is waited for");
    run.complains("--start-timeout");
    world.folder.write(
        "chio.yaml",
        "servers: [{id: slow, command: [sleep, '600'], start_timeout: 1s}]\n\
         listeners: {http: {listen: \"127.0.0.1:0\"}}\nedges: {mcp: {}}\n",
    );
    world.line("serve").ends(2).complains("the server `slow` is not there");
}

#[test]
fn nothing_listens_before_everything_is_ready() {
    let world = World::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fixture = mcp_fixture().display();
    world.folder.write(
        "chio.yaml",
        format!(
            "servers: [{{id: late, command: [sh, -c, \"touch begun; sleep 1; exec '{fixture}'\"]}}]\n\
             listeners: {{http: {{listen: \"{free}\"}}}}\n"
        ),
    );
    let mut server = Server::spawn(&mut world.command(&["serve"]));
    until("the server to be started", || world.folder.path("begun").exists().then_some(()));
    assert!(TcpStream::connect(free).is_err(), "nothing is there yet");
    assert!(!world.folder.path(".chio/native.sock").exists());
    assert!(!world.folder.path(".chio/endpoint.json").exists());
    until("the port to open", || TcpStream::connect(free).ok());
    world.line("call late echo {\"text\":\"hello\"}").ends(0).says("hello");
    server.end();
}

#[test]
fn a_server_that_does_not_start_is_reported_and_tried_again_and_the_others_are_served() {
    let world = World::new();
    let fixture = mcp_fixture().display();
    world.folder.write(
        "chio.yaml",
        format!(
            "servers:\n  - id: demo\n  - id: late\n    command: [sh, -c, \"test -e ready || exit 3; \
             exec '{fixture}'\"]\nlisteners: {{http: {{listen: \"127.0.0.1:0\"}}}}\nedges: {{mcp: {{}}, a2a: {{}}}}\n"
        ),
    );
    let mut server = Server::start(&mut world.command(&["serve"]));
    assert!(server.stderr().contains("the server `late` is not there"), "{}", server.stderr());
    let listed = world.line("tools list").ends(0).says("demo echo").says("not there");
    assert!(!listed.stdout.contains("late echo"), "{listed:#?}");
    let listed = world.line("tools list --json").ends(0).json();
    assert_eq!(listed["problems"][0]["server"], "late", "{listed}");
    world.line("call demo echo {\"text\":\"one\"}").ends(0).says("one");
    world.line("call late echo {\"text\":\"two\"}").ends(1).complains("not there");
    world.line("doctor").ends(1).says("WRONG  server late");
    world.folder.write("ready", "");
    until("the server to be there", || {
        world.line("tools list").ends(0).stdout.contains("late echo").then_some(())
    });
    world.line("call late echo {\"text\":\"two\"}").ends(0).says("two");
    server.end();
}

#[test]
fn schemas_that_are_not_quite_right_are_put_right_or_reported() {
    let of = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let path = json!({"type": "string", "required": true});
    let tools = json!([
        of(
            "old",
            json!({"$schema": "http://json-schema.org/draft-03/schema#", "type": "object",
            "properties": {"path": path}})
        ),
        of("typed", json!({"type": "object", "properties": {"n": {"type": "int"}}})),
        of("elsewhere", json!({"properties": {"n": {"$ref": "https://example.com/n.json"}}})),
        of("broken", json!({"type": "object", "properties": {"n": {"pattern": "("}}})),
    ]);
    let (world, mut words) = scripted(&tools, "");
    words.splice(4..4, ["--http", "127.0.0.1:0", "--anonymous", "default"].map(str::to_owned));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut server = Server::start(&mut world.command(&words));
    let log = server.stderr();
    assert!(log.contains("the input schema of the tool `old` is put right"), "{log}");
    assert!(log.contains("the tool is not listed"), "{log}");
    let url = server.endpoint();
    let listed = world.run(&["tools", "list", "--url", &url]).ends(0);
    let listed = listed.says("old").says("typed").says("elsewhere").says("schema put right");
    let listed = listed.says("s broken").tells("not listed the tool's input schema cannot be used");
    drop(listed);
    let listed = world.run(&["tools", "list", "--url", &url, "--json"]).ends(0).json();
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["old", "typed", "elsewhere"]);
    assert_eq!(listed["problems"][0]["tool"], "broken", "{listed}");
    assert_eq!(
        listed["tools"][0]["inputSchema"],
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
    );
    let call =
        |tool: &str, arguments: &str| world.run(&["call", "--url", &url, "s", tool, arguments]);
    let run = call("old", "{}").ends(1).complains("expected `path`, found none");
    assert!(!run.stderr.contains("policy"), "{run:#?}");
    call("typed", "{\"n\": \"seven\"}").ends(1).complains("`/n`: expected integer, found string");
    let receipts = world.receipts("s");
    assert!(receipts.iter().all(|it| it["decision"]["verdict"] == "deny"), "{receipts:?}");
    assert_eq!(receipts.len(), 2);
    assert!(!Path::new(&world.folder.path("calls")).exists(), "nothing reached the server");
    server.end();
}
