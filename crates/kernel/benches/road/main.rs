//! What the road costs, as ratios against floors measured in the same run.
//!
//! `cargo xtask bench` runs this; `cargo bench -p chio-kernel --bench road -- --quick` is the short
//! form, and a word such as `durable` picks the parts whose name has it. Machines are noisy: floor
//! and product take turns, and only ratios are to be compared with another day's.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a command line program on fixed data"
)]

mod floor;
mod latency;
mod native;
mod orchestrated;
mod query;
mod rig;
mod throughput;

use std::time::Duration;

/// How long everything takes.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// Turns of floor and product.
    turns: usize,
    /// One turn.
    turn: Duration,
    /// The long run with indexing.
    long: Duration,
    /// Receipts in the large store.
    large: u64,
}

/// One part of the benchmark.
type Part = (&'static str, fn(Scale));

const PARTS: &[Part] = &[
    ("evaluate in memory", throughput::in_memory),
    ("durable", throughput::durable),
    ("durable note_put", throughput::durable_effects),
    ("latency", latency::one_caller),
    ("orchestrated", orchestrated::in_memory),
    ("native", native::unix_socket),
    ("long durable run with indexing", throughput::long_run),
    ("large store: memory, audit, query", query::large_store),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let once = arguments.iter().any(|it| it == "--test");
    let quick = once || arguments.iter().any(|it| it == "--quick");
    let wanted: Vec<&String> = arguments.iter().filter(|it| !it.starts_with("--")).collect();
    let scale = if quick {
        let turn = Duration::from_millis(if once { 50 } else { 500 });
        Scale {
            turns: if once { 1 } else { 3 },
            turn,
            long: turn * 10,
            large: if once { 300 } else { 100_000 },
        }
    } else {
        Scale {
            turns: 5,
            turn: Duration::from_secs(2),
            long: Duration::from_secs(60),
            large: 1_000_000,
        }
    };
    println!("{:<52} {:>12} {:>12} {:>7} {:>6}", "", "floor", "ours", "ratio", "goal");
    for (name, run) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|it| name.contains(it.as_str())) {
            run(scale);
        }
    }
}

/// One line: rates per second, their ratio, and what it should be.
fn report(what: &str, floor: f64, ours: f64, goal: Option<f64>) {
    let ratio = ours / floor;
    let goal = goal.map_or(String::from("-"), |goal| {
        format!("{goal:.2}{}", if ratio >= goal { "" } else { " !" })
    });
    println!("{what:<52} {floor:>10.0}/s {ours:>10.0}/s {ratio:>7.2} {goal:>6}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
