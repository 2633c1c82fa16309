//! `SendMessage` of an echo: signed and durable behind our edge, against the official SDK servers
//! doing the same; and what our adapter adds to a call of such a server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::Scale;
use crate::client::Session;
use crate::servers::{CHIO, Folder, Server, start, up};

/// How many connections call at once.
const CONNECTIONS: usize = 32;
/// What clients of 1.0 send along.
const VERSION: &str = "A2A-Version: 1.0\r\n";
/// What is sent to each server's agent.
const OURS: &str = "/skills/echo";
const THEIRS: &str = "/";

fn message(number: u64) -> Value {
    // The same message would be sent once, also in the next turn.
    static SENT: AtomicU64 = AtomicU64::new(0);
    let message = json!({
        "messageId": format!("m-{}", SENT.fetch_add(1, Ordering::Relaxed)),
        "role": "ROLE_USER",
        "parts": [{"text": "hello"}],
    });
    json!({"jsonrpc": "2.0", "id": number, "method": "SendMessage", "params": {"message": message}})
}

async fn send(session: &mut Session, path: &str, number: u64) {
    let answer = session.post_to(path, VERSION, &message(number)).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body.contains("TASK_STATE_COMPLETED"), "{}", answer.body);
}

/// Sends for a while. Tells how many ended each second, and the server's CPU seconds for each.
fn rate(runtime: &Runtime, server: &Server, path: &'static str, time: Duration) -> (f64, f64) {
    let (over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (begun, used) = (Instant::now(), server.cpu_seconds().unwrap_or_default());
    runtime.block_on(async {
        let mut calling = Vec::new();
        for _ in 0..CONNECTIONS {
            let (over, count) = (Arc::clone(&over), Arc::clone(&count));
            let mut session = Session::connect(server.address).await;
            calling.push(tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let number = count.fetch_add(1, Ordering::Relaxed);
                    send(&mut session, path, number).await;
                }
            }));
        }
        tokio::time::sleep(time).await;
        over.store(true, Ordering::Relaxed);
        for call in calling {
            call.await.unwrap();
        }
    });
    let sent = count.load(Ordering::Relaxed) as f64;
    let used = server.cpu_seconds().unwrap_or_default() - used;
    (sent / begun.elapsed().as_secs_f64(), used / sent)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A server of an SDK, if `cargo xtask a2a` has installed it.
fn sdk(name: &str) -> Option<Server> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join(".clients/a2a").join(name);
    let (program, script) = if name.starts_with("python") {
        (folder.join("venv/bin/python"), "server.py")
    } else {
        (PathBuf::from("node"), "server.mjs")
    };
    let script = [folder.join(script), root.join("clients/a2a").join(name).join(script)];
    let script = script.into_iter().find(|script| script.is_file())?;
    if !folder.is_dir() || (program.is_absolute() && !program.is_file()) {
        return None;
    }
    Some(start(Command::new(program).arg(script).arg("--bench").current_dir(folder), false))
}

/// Our edge against the servers of the SDKs.
pub(crate) fn throughput(scale: Scale) {
    let folder = Folder::new("a2a-throughput");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ours = up(&folder);
    let theirs = [
        ("the Python SDK", sdk("python-1"), 20.0),
        ("the JavaScript SDK", sdk("javascript-1"), 6.0),
    ];
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    let mut others = vec![(Vec::new(), Vec::new()); theirs.len()];
    for _ in 0..scale.turns {
        let (rate_, cost) = rate(&runtime, &ours, OURS, scale.turn);
        rates.push(rate_);
        costs.push(cost);
        for ((_, server, _), (rates, costs)) in theirs.iter().zip(&mut others) {
            if let Some(server) = server {
                let (rate_, cost) = rate(&runtime, server, THEIRS, scale.turn);
                rates.push(rate_);
                costs.push(cost);
            }
        }
    }
    let (rate, cost) = (median(rates), median(costs) * 1e6);
    println!("\nSendMessage of echo, {CONNECTIONS} connections, signed and durable");
    println!("  ours: {rate:.0}/s, {cost:.0} us of CPU for each");
    for ((name, _, goal), (rates, costs)) in theirs.iter().zip(others) {
        if rates.is_empty() {
            println!("  against {name}: skipped, `cargo xtask a2a` installs it");
            continue;
        }
        let (peer, peer_cost) = (median(rates), median(costs) * 1e6);
        println!(
            "  against {name}: {peer:.0}/s, {peer_cost:.0} us of CPU for each, ratio {:.1} (goal {goal})",
            rate / peer
        );
    }
}

/// The p50 of calls, one after the other, in microseconds.
fn latency(runtime: &Runtime, calls: usize, mut call: impl AsyncFnMut(u64)) -> f64 {
    let mut times = Vec::with_capacity(calls);
    runtime.block_on(async {
        for number in 0..calls {
            let begun = Instant::now();
            call(number as u64).await;
            times.push(begun.elapsed().as_secs_f64() * 1e6);
        }
    });
    median(times)
}

/// A call through our adapter against the same call of its agent.
pub(crate) fn adapter(scale: Scale) {
    println!("\na skill of the JavaScript SDK's server, one call after the other");
    let Some(agent) = sdk("javascript-1") else {
        println!("  skipped, `cargo xtask a2a` installs it");
        return;
    };
    let folder = Folder::new("a2a-adapter");
    let mut command = Command::new(CHIO);
    let target = format!("http://{}", agent.address);
    command.args(["a2a", "serve", "--target", &target, "--http", "127.0.0.1:0"]);
    command.args(["--anonymous", "default", "--data"]).arg(folder.0.join("data"));
    let through = start(command.current_dir(&folder.0), true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut direct = runtime.block_on(Session::connect(agent.address));
    let mut session = runtime.block_on(Session::open(through.address));
    let calls = scale.calls.min(2000);
    let arguments = json!({"message": "hello"});
    let bare = latency(&runtime, calls, async |number| send(&mut direct, THEIRS, number).await);
    let ours = latency(&runtime, calls, async |_| session.call("echo", &arguments).await);
    println!("  p50 directly: {bare:.0} us, through us (MCP in, A2A out, signed): {ours:.0} us");
    println!("  what we add: {:.0} us, ratio {:.2}", ours - bare, ours / bare);
}
