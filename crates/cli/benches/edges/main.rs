//! What the MCP and A2A edges cost, as ratios against floors measured in the same run: the built
//! binary, a real HTTP load, and real servers beside it.
//!
//! `cargo xtask bench` runs this; `cargo bench -p chio-cli --bench edges -- --quick` is the short
//! form, and a word such as `mcp` or `wrapping` picks the parts whose name has it.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a command line program on fixed data"
)]

mod a2a;
mod bare;
mod client;
mod hostile;
mod memory;
mod servers;
mod throughput;
mod wrapping;

use std::time::Duration;

/// How long everything takes.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// Turns of floor and product.
    turns: usize,
    /// One turn.
    turn: Duration,
    /// Calls of which the latency is taken.
    calls: usize,
    /// Idle sessions.
    sessions: usize,
}

/// One part of the benchmark.
type Part = (&'static str, fn(Scale));

const PARTS: &[Part] = &[
    ("mcp throughput", throughput::run),
    ("mcp wrapping", wrapping::run),
    ("mcp memory", memory::run),
    ("a2a throughput", a2a::throughput),
    ("a2a adapter", a2a::adapter),
    ("hostile", hostile::run),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    if arguments.first().is_some_and(|it| it == bare::ARGUMENT) {
        return bare::serve();
    }
    let once = arguments.iter().any(|it| it == "--test");
    let quick = once || arguments.iter().any(|it| it == "--quick");
    let wanted: Vec<&String> = arguments.iter().filter(|it| !it.starts_with("--")).collect();
    let scale = if quick {
        let turn = Duration::from_millis(if once { 100 } else { 1000 });
        let turns = if once { 1 } else { 2 };
        Scale { turns, turn, calls: if once { 20 } else { 500 }, sessions: 50 }
    } else {
        Scale { turns: 5, turn: Duration::from_secs(3), calls: 5000, sessions: 200 }
    };
    for (name, part) in PARTS {
        if wanted.is_empty()
            || wanted.iter().any(|word| name.contains(&***word) || *word == "edges")
        {
            part(scale);
        }
    }
}
