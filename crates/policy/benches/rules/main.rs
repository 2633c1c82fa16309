//! What rules in Cedar cost a call, and how that grows with their number.
//!
//! `cargo xtask bench` runs this; `cargo bench -p chio-policy --bench rules -- --quick` is the short
//! form. Few rules and many take turns; only ratios are to be compared with another day's.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a command line program on fixed data"
)]

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use chio_core::crypto::Keypair;
use chio_core::manifest::ToolDefinition;
use chio_kernel::{Guard, GuardMemo, Verdict, Work};
use chio_policy::example::ExampleCall;
use chio_policy::guards::{Building, KINDS};
use chio_policy::rules::{Otherwise, Rules, Source};
use chio_policy::state::State;
use chio_yaml::{Place, Problems, Section, parse};
use serde_json::json;

/// How long everything takes.
#[derive(Debug, Clone, Copy)]
struct Scale {
    turns: usize,
    turn: Duration,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let once = arguments.iter().any(|it| it == "--test");
    let quick = once || arguments.iter().any(|it| it == "--quick");
    let scale = match (once, quick) {
        (true, _) => Scale { turns: 1, turn: Duration::from_millis(20) },
        (_, true) => Scale { turns: 3, turn: Duration::from_millis(300) },
        _ => Scale { turns: 7, turn: Duration::from_secs(1) },
    };
    println!("{:<44} {:>12} {:>12} {:>7} {:>6}", "", "10 rules", "1000 rules", "times", "goal");
    growth("rules that name their tools", by_tool, Some(3.0), scale);
    growth("rules that name their agents", by_agent, Some(3.0), scale);
    growth("rules that name their servers", by_server, Some(3.0), scale);
    // These are about every call, so every call asks all of them.
    growth("rules that name nobody", by_nobody, None, scale);
    println!("\n{:<44} {:>12}", "one guard on one call", "");
    for (kind, document) in GUARDS {
        guard(kind, document, scale);
    }
}

fn key(number: usize) -> String {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    Keypair::from_seed(&seed).public_key().to_string()
}

fn by_tool(text: &mut String, number: usize) {
    writeln!(
        text,
        "forbid(principal, action, resource == Tool::\"files/tool_{number}\")
         when {{ context.capability.depth > 3 && context.writes }};"
    )
    .unwrap();
}

fn by_agent(text: &mut String, number: usize) {
    let key = key(number);
    writeln!(
        text,
        "forbid(principal == Agent::\"{key}\", action, resource)
         when {{ context.capability.depth > 3 && context.writes }};"
    )
    .unwrap();
}

fn by_server(text: &mut String, number: usize) {
    let server = if number == 3 { "files".to_owned() } else { format!("server_{number}") };
    writeln!(
        text,
        "forbid(principal, action, resource in Server::\"{server}\")
         when {{ context.capability.depth > 3 && context.writes }};"
    )
    .unwrap();
}

fn by_nobody(text: &mut String, number: usize) {
    writeln!(
        text,
        "forbid(principal, action, resource) when {{ context.capability.depth == {} }};",
        number + 3
    )
    .unwrap();
}

fn rules(rule: fn(&mut String, usize), count: usize) -> Rules {
    let mut text = String::new();
    (0..count).for_each(|number| rule(&mut text, number));
    let start = Place { file: "bench".into(), line: 1, column: 1 };
    let problems = Problems::default();
    let read =
        Rules::read(&[Source { text: &text, start, file: None }], Otherwise::Allow, &problems);
    read.unwrap_or_else(|| panic_with(&problems.into_sorted()))
}

fn panic_with(problems: &[chio_yaml::Problem]) -> ! {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    panic!("{texts:?}")
}

/// A call that rule 3 of each kind speaks of.
fn call() -> ExampleCall {
    let mut call = ExampleCall::new("tool_3", json!({"path": "/workspace/src/main.rs"}));
    call.server_id = "files".to_owned();
    call.token.subject = key(3).parse().unwrap();
    let schema = json!({
        "type": "object", "required": ["path"], "additionalProperties": false,
        "properties": {"path": {"type": "string", "maxLength": 4096}},
    });
    call.tool = Some(ToolDefinition {
        name: "tool_3".to_owned(),
        description: String::new(),
        input_schema: schema.as_object().unwrap().clone(),
        output_schema: None,
        pricing: None,
        has_side_effects: false,
        latency_hint: None,
    });
    call
}

/// Nanoseconds for each time that it is done.
fn time(scale: Scale, mut once: impl FnMut()) -> f64 {
    let (start, mut count) = (Instant::now(), 0_u64);
    while start.elapsed() < scale.turn {
        (0..64).for_each(|_| once());
        count += 64;
    }
    start.elapsed().as_nanos() as f64 / count as f64
}

fn growth(what: &str, rule: fn(&mut String, usize), goal: Option<f64>, scale: Scale) {
    let (few, many) = (rules(rule, 10), rules(rule, 1000));
    let call = call();
    let ask = |rules: &Rules| {
        time(scale, || {
            let memo = GuardMemo::default();
            assert_eq!(
                black_box(rules.ask(&call.input(&memo, &Work::default()))).verdict,
                Verdict::Allow
            );
        })
    };
    let turns: Vec<(f64, f64)> = (0..scale.turns).map(|_| (ask(&few), ask(&many))).collect();
    let few = median(turns.iter().map(|turn| turn.0).collect());
    let many = median(turns.iter().map(|turn| turn.1).collect());
    let times = many / few;
    let goal = goal.map_or_else(
        || "-".to_owned(),
        |goal| format!("{goal:.2}{}", if times <= goal { "" } else { " !" }),
    );
    println!("{what:<44} {few:>9.0} ns {many:>9.0} ns {times:>7.2} {goal:>6}");
}

/// Guards as documents ask for them.
const GUARDS: &[(&str, &str)] = &[
    (
        "rules",
        "{cedar: 'forbid(principal, action, resource) when { context.capability.depth > 3 };'}",
    ),
    ("bridge", "{targets: {a2a: [native]}, require_attenuation: true, refuse_adapted: true}"),
    ("model-constraint", "{deny: ['*-preview']}"),
    ("argument-schema", "{}"),
];

fn guard(name: &str, document: &str, scale: Scale) {
    let kind = KINDS.iter().find(|kind| kind.name == name).unwrap();
    let node = parse(document, "bench").unwrap();
    let (problems, files, state) =
        (Problems::default(), Default::default(), State::default().into());
    let section = Section::new(&node, kind.section, kind.keys, &problems);
    let notes = Problems::default();
    let building = Building { state: &state, folder: None, files: &files, notes: &notes };
    let built = (kind.build)(&section, &building);
    let built = built.unwrap_or_else(|| panic_with(&Vec::new()));
    let (call, guard) = (call(), built.guard);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let once = |guard: &dyn Guard| {
        let memo = GuardMemo::default();
        let outcome = runtime.block_on(guard.check(&call.input(&memo, &Work::default()))).unwrap();
        assert_eq!(outcome.verdict, Verdict::Allow);
    };
    let turns = (0..scale.turns).map(|_| time(scale, || once(&*guard))).collect();
    println!("{name:<44} {:>9.0} ns", median(turns));
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
