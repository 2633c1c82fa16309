//! `tools/call` of an echo, 32 sessions at once: signed and durable behind our edge, against
//! server-everything answering directly, and against a bare axum server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::Scale;
use crate::client::Session;
use crate::servers::{Folder, bare, everything, up};

/// How many sessions call at once.
const SESSIONS: usize = 32;

/// Calls for a while, and tells how many ended each second.
fn rate(
    runtime: &Runtime,
    sessions: &mut Vec<Session>,
    tool: &str,
    args: &Value,
    time: Duration,
) -> f64 {
    let (over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let begun = Instant::now();
    let ended = runtime.block_on(async {
        let calling: Vec<_> = sessions
            .drain(..)
            .map(|mut session| {
                let (over, count) = (Arc::clone(&over), Arc::clone(&count));
                let (tool, args) = (tool.to_owned(), args.clone());
                tokio::spawn(async move {
                    session.reconnect().await;
                    while !over.load(Ordering::Relaxed) {
                        session.call(&tool, &args).await;
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    session
                })
            })
            .collect();
        tokio::time::sleep(time).await;
        over.store(true, Ordering::Relaxed);
        let mut ended = Vec::new();
        for session in calling {
            ended.push(session.await.unwrap());
        }
        ended
    });
    *sessions = ended;
    count.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64()
}

fn open(runtime: &Runtime, address: SocketAddr, with_session: bool) -> Vec<Session> {
    runtime.block_on(async {
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            sessions.push(if with_session {
                Session::open(address).await
            } else {
                Session::connect(address).await
            });
        }
        sessions
    })
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

pub(crate) fn run(scale: Scale) {
    let folder = Folder::new("throughput");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (text, message) = (json!({"text": "hello"}), json!({"message": "hello"}));
    let (ours, floor, peer) = (up(&folder), bare(), everything());
    let mut at_ours = open(&runtime, ours.address, true);
    let mut at_floor = open(&runtime, floor.address, false);
    let mut at_peer = peer.as_ref().map(|peer| open(&runtime, peer.address, true));
    let (mut rates, mut floors, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.turns {
        floors.push(rate(&runtime, &mut at_floor, "echo", &text, scale.turn));
        rates.push(rate(&runtime, &mut at_ours, "echo", &text, scale.turn));
        if let Some(sessions) = &mut at_peer {
            peers.push(rate(&runtime, sessions, "echo", &message, scale.turn));
        }
    }
    let (rate, floor) = (median(rates), median(floors));
    println!("\ntools/call of echo, {SESSIONS} sessions, signed and durable");
    println!(
        "  against a bare axum JSON-RPC echo: {floor:.0}/s, ours {rate:.0}/s, ratio {:.3} (goal 0.15)",
        rate / floor
    );
    if peers.is_empty() {
        println!("  against server-everything: skipped, `cargo xtask mcp` installs it");
    } else {
        let peer = median(peers);
        println!(
            "  against server-everything answering directly: {peer:.0}/s, ours {rate:.0}/s, ratio {:.1} (goal 5)",
            rate / peer
        );
    }
}
