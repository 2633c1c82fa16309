//! What a policy costs a call: `evaluate` under each built-in ruleset against `evaluate` without a
//! guard, on one core and in memory, as ratios of the same run.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a command line program on fixed data"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chio_core::capability::{
    CapabilityToken, ChioScope, Operation, PresentedToken, ToolGrant, Validity, WILDCARD,
};
use chio_core::crypto::Keypair;
use chio_core::protocol::DiscoveryProtocol;
use chio_core::signed::Signed as _;
use chio_demo::{DemoOptions, DemoServer};
use chio_kernel::{
    Caller, ChioKernel, Clock, KernelConfig, KernelParts, NoCaller, Outcome, Pipeline, Session,
    SystemClock, SystemRandomness, ToolCall,
};
use chio_policy::Policy;
use chio_policy::document::RULESETS;
use chio_policy::state::State;
use chio_store::{OpenStore, StoreUrl};
use serde_json::{Value, json};

/// What is asked of `default`.
const GOAL: f64 = 0.6;

struct Rig {
    runtime: tokio::runtime::Runtime,
    kernel: ChioKernel,
    token: PresentedToken,
    caller: Arc<dyn Caller>,
}

impl Rig {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let store =
            runtime.block_on(OpenStore::open(&StoreUrl::Memory, Arc::clone(&clock))).unwrap();
        let slot = runtime.block_on(store.take_slot(None)).unwrap();
        let authority = runtime.block_on(store.authority()).unwrap().unwrap();
        let token = token(&authority, clock.unix_seconds());
        let parts = KernelParts {
            config: KernelConfig {
                trusted_issuers: vec![authority.public_key().clone()],
                ..KernelConfig::default()
            },
            key: slot.key,
            ledger: slot.ledger,
            store: store.shared(),
            clock: Arc::clone(&clock),
            randomness: Arc::<SystemRandomness>::default(),
            pipeline: Pipeline::none(),
        };
        let kernel = runtime.block_on(ChioKernel::start(parts)).unwrap();
        let public_key = kernel.public_key().clone();
        let demo = DemoServer::new(DemoOptions { public_key, clock, notes: None }).unwrap();
        kernel.register_tool_server(Box::new(demo)).unwrap();
        let (id, protocol) = ("bench".to_owned(), DiscoveryProtocol::Native);
        let session = Session::anonymous(id, protocol);
        let caller: Arc<dyn Caller> = Arc::new(NoCaller::new(session));
        Self { runtime, kernel, token, caller }
    }

    /// How many calls a second one caller gets through under these guards.
    fn rate(&self, pipeline: Pipeline, arguments: &Value, turn: Duration) -> f64 {
        self.kernel.set_pipeline(pipeline);
        self.runtime.block_on(async {
            let (start, mut done) = (Instant::now(), 0_u64);
            while start.elapsed() < turn {
                let id = self.kernel.new_request_id();
                let call = ToolCall::new(id, self.token.clone(), "demo", "echo", arguments.clone());
                let ended = self.kernel.evaluate(call, Arc::clone(&self.caller)).await.unwrap();
                assert!(matches!(ended.outcome, Outcome::Value(_)), "{:?}", ended.outcome);
                done += 1;
                tokio::task::yield_now().await;
            }
            done as f64 / start.elapsed().as_secs_f64()
        })
    }
}

fn token(authority: &Keypair, now: u64) -> PresentedToken {
    let grant = ToolGrant::new("demo", WILDCARD, &[Operation::Invoke]);
    let scope = ChioScope { grants: vec![grant], ..ChioScope::default() };
    let validity = Validity { issued_at: now, expires_at: now + 3600 };
    let (issuer, agent) = (authority.public_key().clone(), Keypair::generate());
    let draft =
        CapabilityToken::draft("cap-bench", issuer, agent.public_key().clone(), scope, validity);
    draft.signed(authority).unwrap().into()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let once = arguments.iter().any(|it| it == "--test");
    let quick = once || arguments.iter().any(|it| it == "--quick");
    let (turns, turn) = match (once, quick) {
        (true, _) => (1, Duration::from_millis(50)),
        (false, true) => (3, Duration::from_millis(500)),
        (false, false) => (5, Duration::from_secs(2)),
    };
    println!("{:<52} {:>12} {:>12} {:>7} {:>6}", "", "floor", "ours", "ratio", "goal");
    let long: String = "All work and no play makes Jack a dull boy. ".repeat(100);
    let inputs = [("hello", json!({"text": "hello"})), ("4 KiB of text", json!({"text": long}))];
    for (what, input) in &inputs {
        // `strict` limits how often one agent may call, so that it cannot be measured like this.
        for ruleset in RULESETS.iter().filter(|ruleset| ruleset.name != "strict") {
            let state = Arc::new(State::default());
            let policy = Policy::load(ruleset.name, Path::new("."), &state).unwrap();
            let rig = Rig::new();
            let pipeline = rig.runtime.block_on(policy.proven()).unwrap();
            let (mut floors, mut ours) = (Vec::new(), Vec::new());
            for _ in 0..turns {
                floors.push(rig.rate(Pipeline::none(), input, turn));
                ours.push(rig.rate(pipeline.clone(), input, turn));
            }
            let (floor, ours) = (median(floors), median(ours));
            let ratio = ours / floor;
            let goal = (ruleset.name == "default" && *what == "hello").then_some(GOAL);
            let mark = if goal.is_some_and(|goal| ratio < goal) { " !" } else { "" };
            let goal = goal.map_or_else(|| "-".to_owned(), |goal| format!("{goal:.2}"));
            let name = format!("evaluate echo of {what}, {} / no guards", ruleset.name);
            println!("{name:<52} {floor:>10.0}/s {ours:>10.0}/s {ratio:>7.2} {goal:>6}{mark}");
        }
    }
}
