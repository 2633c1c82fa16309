//! Several processes at the same moment.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use chio_native_edge::NativeClient;
use chio_testkit::process::{Server, request, until};
use chio_testkit::token::grant;
use serde_json::{Value, json};

use crate::support::{World, block_on};

#[test]
fn processes_that_start_at_once_on_a_new_store_agree_on_it() {
    let world = World::new();
    let sockets: Vec<_> =
        (0..5).map(|number| world.folder.path(&format!("{number}.sock"))).collect();
    let mut servers: Vec<Server> = sockets
        .iter()
        .map(|socket| {
            let words = ["native", "serve", "--data", "s", "--unix", socket.to_str().unwrap()];
            let mut command = world.command(&words);
            Server::spawn(command.stdout(Stdio::null()))
        })
        .collect();
    let mut kernels = BTreeSet::new();
    for server in &servers {
        until("a server to listen", || server.stderr().contains("listening on").then_some(()));
        kernels.insert(server.kernel_key());
    }
    assert_eq!(kernels.len(), 5);
    let token = world.token("start-1", vec![grant("note_put")]);
    for server in &servers {
        let note = json!({"name": "n", "text": "x"});
        server.connect().call("1", &token, "note_put", note).receipt.verify().unwrap();
    }
    let listed = world.line("kernel list --data s --json").ends(0).json();
    assert_eq!(listed["kernels"].as_array().unwrap().len(), 5);
    for server in &mut servers {
        server.end();
    }
    assert_eq!(world.audit()["receipts"], 5);
    assert_eq!(world.rows("--outcome allow").len(), 5);
}

#[test]
fn whoever_follows_two_processes_sees_each_receipt_once() {
    const CALLS: usize = 100;
    let world = World::new();
    let servers = [world.serve(""), world.serve_at("b.sock", "")];
    let token = world.token("follow-1", vec![grant("echo")]);
    servers[0].connect().call("first", &token, "echo", json!({"text": "hi"}));
    let count = (2 * CALLS + 1).to_string();
    let words = ["receipt", "tail", "--data", "s", "--last", "1", "--json", "--count", &count];
    let mut tail = world.command(&words).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    let endpoints = servers.iter().map(|server| server.endpoint().parse().unwrap());
    let endpoints: Vec<chio_edge::Endpoint> = endpoints.collect();
    block_on(async {
        let mut callers = tokio::task::JoinSet::new();
        for endpoint in endpoints {
            let token = token.clone();
            callers.spawn(async move {
                let client = NativeClient::connect(&endpoint).await.unwrap();
                for call in 0..CALLS {
                    let id = call.to_string();
                    let request = request(&id, &token, "echo", json!({"text": id}));
                    client.call(request, |_, _| ()).await.unwrap();
                }
            });
        }
        callers.join_all().await;
    });
    let id = |line: String| {
        let row: Value = serde_json::from_str(&line).unwrap();
        row["receipt"]["id"].as_str().unwrap().to_owned()
    };
    let mut seen: BTreeSet<String> = lines.map(id).collect();
    assert!(tail.wait().unwrap().success());
    assert_eq!(seen.len(), 2 * CALLS);
    seen.insert(id(first));
    assert_eq!(seen.len(), 2 * CALLS + 1);
    let kept: BTreeSet<_> = world.receipts("follow-1").into_iter().map(|it| it.id).collect();
    assert_eq!(seen, kept);
}
