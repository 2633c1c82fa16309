//! What clients can cost of which nothing is known yet: connections that ask for nothing, and messages
//! that do not end or have too much in them. Honest clients beside them are served.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use chio_testkit::mcp::{Request, Session, text_of};
use serde_json::json;

use crate::support::{Growth, World};

/// By how many megabytes a process may grow.
const MOST_GROWTH: u64 = 256;
/// How many clients there are at once.
const CLIENTS: usize = 100;
/// How long a client goes on with a server that does not read. No test waits for it.
const STUBBORN: Duration = Duration::from_secs(4);

/// Runs this for a number of clients at once.
fn each_client(count: usize, run: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        let run = &run;
        let clients: Vec<_> = (0..count).map(|number| scope.spawn(move || run(number))).collect();
        for client in clients {
            client.join().unwrap();
        }
    });
}

#[track_caller]
fn check_echo(session: &Session, text: &str) {
    assert_eq!(text_of(&session.call("echo", &json!({"text": text}))), text);
}

/// Connections that ask for nothing: silent, in the middle of a head or of a body, or after an
/// answer that they do not read.
fn quiet(address: &str, count: usize) -> Vec<TcpStream> {
    let host = format!("Host: {address}\r\n");
    let parts = [
        String::new(),
        format!("POST /mcp HTTP/1.1\r\n{host}"),
        format!(
            "POST / HTTP/1.1\r\n{host}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
        ),
        format!("GET /nothing HTTP/1.1\r\n{host}\r\n"),
    ];
    let connect = |number: usize| {
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(parts[number % parts.len()].as_bytes());
        stream
    };
    (0..count).map(connect).collect()
}

/// Checks that a number of quiet connections shuts no client out.
#[track_caller]
fn check_quiet(files: Option<u64>, connections: usize) {
    let world = World { files, ..World::new() };
    let served = world.wrap("--policy permissive --anonymous default");
    let before = served.door.open();
    let quiet = quiet(&served.door.address, connections);
    check_echo(&before, "was there before");
    check_echo(&served.door.open(), "came later");
    drop(quiet);
    world.check_calls(&[("echo", "allow"), ("echo", "allow")]);
}

#[test]
fn quiet_connections_shut_no_client_out() {
    // Half of the files that the server may open are connections.
    check_quiet(Some(400), 600);
}

#[test]
fn more_quiet_connections_than_a_listener_takes_shut_no_client_out() {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    // As many files have to be open here.
    let connections = if most.is_none_or(|most| most > 6000) { 4400 } else { 300 };
    check_quiet(None, connections);
}

#[test]
fn a_wrong_credential_is_refused_before_the_body_comes() {
    let world = World::new();
    world.folder.write("alice.token", "0123456789abcdef");
    world.folder.write(
        "chio.yaml",
        "store: s\nservers: [{id: demo}]\nlisteners:\n  http: {listen: \"127.0.0.1:0\", tokens: \
         [{name: alice, file: alice.token}]}\nedges: {mcp: {}, a2a: {}}\n",
    );
    let served = world.start(&["serve"]);
    let address = &served.door.address;
    for (path, bearer) in
        [("/mcp", ""), ("/mcp", "wrong"), ("/", "wrong"), ("/rest/tasks", "wrong")]
    {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let shown = if bearer.is_empty() {
            String::new()
        } else {
            format!("Authorization: Bearer {}\r\n", bearer.repeat(8))
        };
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {address}\r\n{shown}Accept: application/json, \
             text/event-stream\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\n\r\n"
        )
        .unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 401", "{path} {bearer}");
    }
}

#[test]
fn bodies_that_do_not_end_cost_bounded_memory_and_hold_nobody_up() {
    let (_world, served) = World::wrapped("");
    let session = served.door.open();
    let growth = Growth::of(&served, MOST_GROWTH);
    let body = vec![b' '; (8 << 20) - 1];
    let request = session.of(Request::post_bytes(body));
    let (address, request) = (served.door.address.as_str(), &request);
    let unfinished = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_write_timeout(Some(STUBBORN)).unwrap();
        let bytes = request.bytes(address);
        let all_but_last = bytes.len() - 1;
        let _ = stream.write_all(&bytes[..all_but_last]);
        stream
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..2 * CLIENTS).map(|_| scope.spawn(unfinished)).collect();
        // A message as others send it goes its way meanwhile, and so does a large one.
        check_echo(&session, "small");
        let streams: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        check_echo(&session, &"large".repeat(100_000));
        drop(streams);
    });
    growth.check("200 unfinished bodies of 8 MiB");
}

#[test]
fn bodies_of_many_small_values_cost_bounded_memory() {
    let (_world, served) = World::up();
    let growth = Growth::of(&served, MOST_GROWTH);
    let address = &served.door.address;
    for (what, values, count) in [
        ("4 MiB of arrays", "[0],", 1 << 20),
        ("as many arrays as may be", "[0],", (1 << 18) - 64),
        ("as many objects as may be", "{\"\":0},", (1 << 19) / 3 - 64),
    ] {
        // No credential is shown: it could be in the body.
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{{\"a\":[{}0]}}}}",
            values.repeat(count - 32)
        );
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nA2A-Version: 1.0\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        each_client(CLIENTS, |_| {
            let mut stream = TcpStream::connect(address).unwrap();
            let _ =
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 "), "{answer}");
        });
        growth.check(what);
    }
}

#[test]
fn frames_of_many_small_values_cost_bounded_memory() {
    let (world, served) = World::up();
    let growth = Growth::of(&served, MOST_GROWTH);
    let socket = world.folder.path("s/native.sock");
    let payload = format!("{{\"type\":\"heartbeat\",\"a\":[{}0]}}", "[0],".repeat((4 << 20) - 16));
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    each_client(CLIENTS, |_| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let sent = stream.write_all(&length).and_then(|()| stream.write_all(payload.as_bytes()));
        let mut rest = Vec::new();
        // It is hung up on, whether all was read or not.
        let read = stream.read_to_end(&mut rest);
        assert!(sent.is_err() || read.is_err() || rest.is_empty());
    });
    growth.check("frames of 16 MiB of arrays");
    check_native(&world);
}

#[test]
fn quiet_native_connections_shut_no_client_out() {
    let (world, _served) = World::up();
    let socket = world.folder.path("s/native.sock");
    let connect = |number: usize| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let part: &[u8] = if number.is_multiple_of(2) { b"" } else { &[0, 0, 1, 0, b'{'] };
        let _ = stream.write_all(part);
        stream
    };
    let quiet: Vec<_> = (0..400).map(connect).collect();
    check_native(&world);
    drop(quiet);
}

/// Checks that a client of the socket is answered.
#[track_caller]
fn check_native(world: &World) {
    let mut stream = UnixStream::connect(world.folder.path("s/native.sock")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let heartbeat = b"{\"type\":\"heartbeat\"}";
    let length = u32::try_from(heartbeat.len()).unwrap().to_be_bytes();
    stream.write_all(&[&length, &heartbeat[..]].concat()).unwrap();
    let mut answer = vec![0; 4 + heartbeat.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer[4..], heartbeat);
}

/// A server whose one tool answers with a line of 15 MB.
const LONG_LINES: &str = r#"
while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
    *'"initialize"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"long","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"tools/call"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"a":[' "$id"
        cat values
        printf '0]}}}\n' ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
    esac
done"#;

#[test]
fn long_lines_of_upstreams_cost_bounded_memory() {
    // Many values, and one that is long.
    for (what, values) in [
        ("arrays", "[0],[0],"),
        ("text", "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\","),
    ] {
        let world = World::new();
        world.folder.write("values", values.repeat(15_000_000 / values.len()));
        let served = world.wrap_script(LONG_LINES);
        let growth = Growth::of(&served, MOST_GROWTH);
        each_client(CLIENTS, |_| {
            let result = served.door.open().call("long", &json!({}));
            assert_eq!(result["isError"], true, "{}", result.to_string().len());
        });
        growth.check(&format!("lines of 15 MB of {what}"));
        assert_eq!(world.calls().len(), CLIENTS);
    }
}
