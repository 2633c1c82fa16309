//! Keys, tokens and the processes that may have them.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;

use chio_testkit::key;
use chio_testkit::process::{Server, until};
use serde_json::{Value, json};

use crate::support::World;

/// A configuration with a token for Alice, in a file of her own, and what is said of the edges.
fn configure(world: &World, listen: &str, edges: &str) {
    world.folder.write("t", "0123456789abcdef\n");
    world.folder.write(
        "chio.yaml",
        format!(
            "servers: [{{id: demo}}]\nlisteners:\n  http: {{listen: \"{listen}\", tokens: [{{name: \
             alice, file: t}}]}}\nedges: {edges}\n"
        ),
    );
}

fn serve(world: &World) -> Server {
    Server::start(&mut world.command(&["serve"]))
}

fn endpoint(world: &World) -> Value {
    serde_json::from_str(&world.folder.read(".chio/endpoint.json")).unwrap()
}

/// The address in a URL.
fn address(url: &Value) -> String {
    let url = url.as_str().unwrap().trim_start_matches("http://");
    url.split('/').next().unwrap().to_owned()
}

/// The status of the answer to a request with these headers, each with its line end.
fn status(address: &str, request: &str, headers: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         {headers}\r\n{body}"
    )
    .unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    String::from_utf8_lossy(&head[9..]).parse().unwrap()
}

fn hello() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}})
    .to_string()
}

#[test]
fn a_token_goes_only_to_the_process_that_still_holds_its_endpoint_file() {
    let world = World::new();
    configure(&world, "127.0.0.1:0", "{mcp: {}}");
    let mut server = serve(&world);
    world.line("call demo now").ends(0);
    let address = address(&endpoint(&world)["mcp"]);
    server.kill();
    let thief = TcpListener::bind(&address).unwrap();
    thief.set_nonblocking(true).unwrap();
    for command in ["call demo now", "tools list"] {
        let run = world.line(command).ends(2).complains("no server answers at http://");
        run.complains("has ended").complains("start it with `chio up`");
    }
    assert_eq!(thief.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "it was sent nothing");
    drop(thief);
    // The next one takes the place of the file that was left.
    let _server = serve(&world);
    world.line("call demo now").ends(0);
}

#[test]
fn commands_reach_a_process_on_loopback_alone() {
    let world = World::new();
    configure(&world, "0.0.0.0:0", "{mcp: {}}");
    let mut server = serve(&world);
    assert!(address(&endpoint(&world)["mcp"]).starts_with("0.0.0.0:"));
    world.line("call demo now").ends(0);
    server.end();
    let elsewhere = json!({"mcp": "http://192.0.2.7:9/mcp", "process": 1, "token": "t"});
    world.folder.write(".chio/endpoint.json", elsewhere.to_string());
    let run = world.line("call demo now").ends(2);
    run.complains("expected a process that listens on loopback").complains("--bearer-file");
}

#[test]
fn a_rate_counts_who_calls_and_not_how_a_header_is_written() {
    let world = World::new();
    configure(&world, "127.0.0.1:0", "{mcp: {rate: 6}, a2a: {rate: 6}}");
    let _server = serve(&world);
    let address = address(&endpoint(&world)["mcp"]);
    let spellings = [
        "Authorization: Bearer 0123456789abcdef\r\n",
        "authorization: bearer 0123456789abcdef\r\n",
        "AUTHORIZATION: BEARER   0123456789abcdef\r\n",
        "Authorization: Bearer 0123456789abcdef  \r\nX-Forwarded-For: 192.0.2.1\r\n",
        "Authorization: Bearer 0123456789abcdef\r\nForwarded: for=192.0.2.2\r\n",
        "X-Real-IP: 192.0.2.3\r\nAuthorization:Bearer 0123456789abcdef\r\n",
        "Authorization: Bearer 0123456789abcdef\r\nCookie: a=b\r\n",
    ];
    let answers = |headers: &[&str], request: &str, body: &str| {
        let answers = headers.iter().map(|headers| status(&address, request, headers, body));
        answers.collect::<Vec<_>>()
    };
    let mcp = answers(&spellings, "POST /mcp", &hello());
    assert_eq!(mcp, [200, 200, 200, 200, 200, 200, 429]);
    // A caller without a name is its address, whatever it shows.
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}).to_string();
    let guesses: Vec<String> = (0..7)
        .map(|number| format!("A2A-Version: 1.0\r\nAuthorization: Bearer guess-{number:016}\r\n"))
        .collect();
    let guesses: Vec<&str> = guesses.iter().map(String::as_str).collect();
    let a2a = answers(&guesses, "POST /", &list);
    assert_eq!(a2a, [401, 401, 401, 401, 401, 401, 429]);
    let alice = format!("A2A-Version: 1.0\r\n{}", spellings[1]);
    assert_eq!(status(&address, "POST /", &alice, &list), 200, "Alice has a rate of her own");
}

#[test]
fn a_browser_does_nothing_for_another_site() {
    let world = World::new();
    let (_server, _) = world.up(&[]);
    let address = address(&endpoint(&world)["mcp"]);
    let own = format!("Origin: http://{address}\r\n");
    for (origin, site, fine) in [
        ("", "", true),
        ("", "none", true),
        ("", "same-origin", true),
        ("", "same-site", false),
        ("", "cross-site", false),
        (&*own, "cross-site", true),
        ("Origin: https://evil.example\r\n", "none", false),
    ] {
        let site =
            if site.is_empty() { String::new() } else { format!("Sec-Fetch-Site: {site}\r\n") };
        let headers = format!("{origin}{site}");
        let expected = if fine { 200 } else { 403 };
        let card = "GET /.well-known/agent-card.json";
        assert_eq!(status(&address, card, &headers, ""), expected, "{headers}");
        assert_eq!(status(&address, "POST /mcp", &headers, &hello()), expected, "{headers}");
    }
}

#[test]
fn keys_that_others_can_change_are_refused_and_those_that_they_can_read_are_told() {
    let world = World::new();
    let (mut server, _) = world.up(&[]);
    server.end();
    let set = |name: &str, mode: u32| {
        fs::set_permissions(world.folder.path(name), Permissions::from_mode(mode)).unwrap();
    };
    for name in ["authority.key", "approver.key", "kernels/0/key", "demo/agent.key"]
        .map(|it| format!(".chio/{it}"))
    {
        set(&name, 0o660);
        let run = world.line("up --listen 127.0.0.1:0").ends(2);
        run.complains("expected a file that only its owner can change").complains(&name);
        set(&name, 0o640);
        let (mut server, _) = world.up(&[]);
        server.end();
        let told = server.stderr();
        assert!(told.contains(&format!("warning: `{name}` can be read by others")), "{told}");
        set(&name, 0o600);
    }
    // Who can change the folder can put another key into it.
    set(".chio", 0o770);
    world.line("up --listen 127.0.0.1:0").ends(2).complains("run `chmod 700` on it");
    set(".chio", 0o700);
    // Other commands that sign with the key refuse it as well, and so do tokens of clients.
    set(".chio/authority.key", 0o602);
    let issue = "capability issue --data .chio --subject .chio/demo/agent.key --grant demo/echo";
    world.line(issue).ends(2).complains("only its owner can change");
    set(".chio/authority.key", 0o600);
    configure(&world, "127.0.0.1:0", "{mcp: {}}");
    set("t", 0o622);
    world.line("serve").ends(2).complains("expected a file that only its owner can change");
    set("t", 0o600);
    world.folder.write("t", "short\n");
    let short = "mcp serve --http 127.0.0.1:0 --auth-token-file t -- ls";
    world.line(short).ends(2).complains("expected a token of at least 16 characters, found 5");
}

#[test]
fn a_data_directory_that_was_not_made_here_is_used_only_when_that_is_said() {
    let world = World::new();
    let up = "up --listen 127.0.0.1:0";
    let expected = "expected a data directory that this program made for this user";
    // One that came with a repository: a key that its author knows, and no store.
    fs::create_dir(world.folder.path(".chio")).unwrap();
    world.folder.write_key(".chio/authority.key", &key(9));
    let run = world.line(up).ends(2).complains(expected);
    run.complains("it has no store, but `authority.key`").complains("--adopt");
    world.line("doctor").ends(1).says("was not made here");
    assert_eq!(fs::read_dir(world.folder.path(".chio")).unwrap().count(), 1, "nothing is added");
    fs::remove_file(world.folder.path(".chio/authority.key")).unwrap();
    // An empty folder has no owner to ask.
    let (mut server, _) = world.up(&[]);
    server.end();
    // A whole one that was unpacked, with the modes that others leave.
    let set = |name: &str, mode: u32| {
        fs::set_permissions(world.folder.path(name), Permissions::from_mode(mode)).unwrap();
    };
    set(".chio", 0o755);
    set(".chio/authority.key", 0o644);
    world.line(up).ends(2).complains(expected).complains("as if it came from elsewhere");
    let (mut server, _) = world.up(&["--adopt"]);
    server.end();
    assert_eq!(world.mode(".chio"), 0o700);
    // From then on it is ours.
    let (mut server, _) = world.up(&[]);
    server.end();
    if std::os::unix::fs::chown(world.folder.path(".chio"), Some(4242), None).is_ok() {
        world.line(up).ends(2).complains(expected).complains("it belongs to the user 4242");
    }
}

#[test]
fn a_replaced_authority_is_told_by_every_command_and_by_the_process_that_runs() {
    let world = World::new();
    let (mut server, _) = world.up(&[]);
    let own = world.folder.read_key(".chio/authority.key");
    let other = key(9);
    world.folder.write_key(".chio/authority.key", &other);
    let (expected, found) = (own.public_key().to_hex(), other.public_key().to_hex());
    let words = format!("expected the authority key `{expected}` of this store, found `{found}`");
    let line = until("a warning", || {
        let told = server.stderr();
        told.lines().find(|line| line.contains("was replaced while it serves")).map(str::to_owned)
    });
    assert!(line.contains(&words), "{line}");
    // It goes on with the key that it has.
    world.line("call demo now").ends(0);
    server.end();
    world.line("up --listen 127.0.0.1:0").ends(2).complains(&words);
    world.line("doctor").ends(1).tells(&words);
    world.line("log audit").ends(1).says("NOT CLEAN").complains(&words);
    world.folder.write_key(".chio/authority.key", &own);
    world.line("log audit").ends(0);
}
