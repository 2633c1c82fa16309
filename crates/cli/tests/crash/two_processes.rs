//! Two processes on one store, of which one is killed again and again.

use std::time::Duration;

use chio_core::capability::CapabilityToken;
use chio_core::receipt::Decision;
use chio_native_edge::NativeClient;
use chio_testkit::process::{Server, request, until};
use chio_testkit::token::{child, grant};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::check::Counted;
use crate::load::{Load, Plan, runtime};
use crate::support::{Chance, World, agent, at_most, endpoint};

/// How often one of the two is killed.
const KILLS: usize = 10;
/// What one load calls at most, on each process.
const CALLS: u64 = 80;
/// Calls in all that two tokens may make which come from one.
const SHARED: u32 = 500;
/// Calls of the token that is held open.
const SLEEPS: u32 = 1000;
/// Calls that are open whenever a process is killed.
const OPEN: usize = 3;
/// Time for a kernel to look twice for calls that no process finishes.
const SOME_SWEEPS: Duration = Duration::from_millis(2500);

/// What the callers have: siblings that share a budget, and a token to hold calls open with.
struct Tokens {
    parent: CapabilityToken,
    siblings: [CapabilityToken; 2],
    sleeper: CapabilityToken,
}

impl Tokens {
    fn new(world: &mut World) -> Self {
        let parent = world.token("parent", vec![grant("echo"), at_most("note_put", SHARED)]);
        let authority = world.folder.read_key("s/authority.key");
        let agent = agent();
        let sibling = |id| child(&authority, &parent, &agent, agent.public_key(), id);
        let siblings = [sibling("one"), sibling("two")];
        let sleeper = world.token("sleeper", vec![at_most("sleep", SLEEPS)]);
        let (shared, sleeps) = (Some(u64::from(SHARED)), Some(u64::from(SLEEPS)));
        let counted = |capability, grant, presented, calls| Counted {
            capability,
            grant,
            presented,
            calls,
            cents: None,
        };
        world.counted = vec![
            counted("parent", 1, &["one", "two"][..], shared),
            counted("one", 1, &["one"], shared),
            counted("two", 1, &["two"], shared),
            counted("sleeper", 0, &["sleeper"], sleeps),
        ];
        Self { parent, siblings, sleeper }
    }

    fn plan(&self, most: u64) -> Plan {
        let calls = self.siblings.iter().map(|token| ("note_put", token.clone())).collect();
        Plan { calls, connections: 2, callers: 16, most, bulk: 0, reconnect: false }
    }
}

/// Calls that are still open when their process dies.
fn hold_open(
    runtime: &Runtime,
    server: &Server,
    token: &CapabilityToken,
    round: usize,
) -> Vec<JoinHandle<()>> {
    let at = endpoint(server);
    let client = runtime.block_on(NativeClient::connect(&at)).unwrap();
    let sleep = |number| {
        let id = format!("s{round}-{number}");
        let request = request(&id, token, "sleep", json!({"ms": 60_000 - number}));
        let client = client.clone();
        runtime.spawn(async move {
            let outcome = client.call(request, |_, _| ()).await;
            assert!(outcome.is_err(), "an answer from the dead: {outcome:?}");
        })
    };
    (0..OPEN).map(sleep).collect()
}

/// The requests that a kernel has open.
fn open_requests(world: &mut World, kernel: &str, tool: &str) -> Vec<String> {
    let snapshot = world.snapshot();
    let open = snapshot.open_in(kernel).map(|open| &open.reservation.intent);
    open.filter(|intent| intent.tool_name == tool).map(|it| it.request_id.clone()).collect()
}

#[test]
fn what_a_dead_process_left_open_is_closed_once_by_its_survivor_or_its_successor() {
    let mut chance = Chance::of("two processes");
    let (mut world, runtime) = (World::new(), runtime());
    let survivor = world.serve();
    let tokens = Tokens::new(&mut world);
    present(&mut world, &runtime, &survivor, &tokens.parent);
    let (lasting, plan) = (survivor.kernel_key(), tokens.plan(CALLS));
    for round in 0..KILLS {
        let mut doomed = Server::start(&mut world.serve_command("b.sock"));
        let dying = doomed.kernel_key();
        assert_ne!(dying, lasting, "two processes write one log");
        let sleepers = hold_open(&runtime, &doomed, &tokens.sleeper, round);
        let name = |which: &str| format!("{which}{round}");
        let ours = Load::start(&runtime, endpoint(&survivor), &plan, name("a"), &mut chance);
        let theirs = Load::start(&runtime, endpoint(&doomed), &plan, name("b"), &mut chance);
        let held = until("calls that are held open", || {
            let open = open_requests(&mut world, &dying, "sleep");
            (open.len() == OPEN).then_some(open)
        });
        chance.pause(0, 60);
        doomed.kill();
        // Every other time another process may take the killed one's place at once.
        let successor = (round % 2 == 1).then(|| {
            chance.pause(0, 20);
            Server::start(&mut world.serve_command("c.sock"))
        });
        for sleeper in sleepers {
            runtime.block_on(sleeper).unwrap();
        }
        check_kernels(&mut world, &runtime, [(ours, &lasting), (theirs, &dying)]);
        world.wait_until_closed();
        let closers = closers(&mut world, &held);
        if successor.is_none() {
            assert!(closers.iter().all(|key| *key == lasting), "{lasting} is not {closers:?}");
        }
        let when = format!("kill {round}");
        world.check(&when);
        world.audit(&when);
        if let Some(mut successor) = successor {
            assert_ne!(successor.kernel_key(), lasting, "two processes write one log");
            successor.end();
        }
    }
    use_up(&mut world, &runtime, &survivor, &tokens, &mut chance);
    both_die(&mut world, &runtime, survivor, &tokens);
}

/// The kernel that comes after two that died closes what both have left.
fn both_die(world: &mut World, runtime: &Runtime, mut one: Server, tokens: &Tokens) {
    let mut other = Server::start(&mut world.serve_command("b.sock"));
    let mut held = Vec::new();
    for (round, server) in [(KILLS, &one), (KILLS + 1, &other)] {
        hold_open(runtime, server, &tokens.sleeper, round);
        held.extend(until("calls that are held open", || {
            let open = open_requests(world, &server.kernel_key(), "sleep");
            (open.len() == OPEN).then_some(open)
        }));
    }
    // No kernel closes the calls of a running one, however often it looks.
    std::thread::sleep(SOME_SWEEPS);
    let mut open: Vec<_> = world.snapshot().intents;
    open.retain(|open| held.contains(&open.reservation.intent.request_id));
    assert_eq!(open.len(), held.len());
    one.kill();
    other.kill();
    let mut heir = world.serve();
    world.wait_until_closed();
    let heir_key = heir.kernel_key();
    assert!(closers(world, &held).iter().all(|key| *key == heir_key));
    heir.end();
    let snapshot = world.check("in the end");
    world.audit("in the end");
    assert!(snapshot.logs.len() <= 4, "dead processes' places are not taken: {:?}", snapshot.logs);
}

/// Makes a token known, so that others can come from it.
fn present(world: &mut World, runtime: &Runtime, server: &Server, token: &CapabilityToken) {
    let answer = runtime.block_on(async {
        let client = NativeClient::connect(&endpoint(server)).await.unwrap();
        client.call(request("p", token, "echo", json!({"text": "p"})), |_, _| ()).await.unwrap()
    });
    assert_eq!(answer.receipt.decision, Some(Decision::Allow));
    world.record.answers.push(answer);
}

/// Waits for both loads and checks that each process has signed with its own key.
fn check_kernels(world: &mut World, runtime: &Runtime, loads: [(Load, &String); 2]) {
    for (load, kernel) in loads {
        let before = world.record.answers.len();
        load.finish(runtime, world);
        for answer in &world.record.answers[before..] {
            assert_eq!(answer.receipt.kernel_key.to_hex(), **kernel);
        }
    }
}

/// The kernels that have closed these calls, none of which has ended.
fn closers(world: &mut World, requests: &[String]) -> Vec<String> {
    let snapshot = world.snapshot();
    let of = |request: &String| {
        let found = snapshot.receipts.iter().find(|entry| {
            let context =
                entry.receipt.metadata.as_ref().unwrap().pointer("/receipt_context/request_id");
            context.is_some_and(|id| id == request.as_str())
        });
        let receipt = &found.unwrap().receipt;
        assert!(matches!(receipt.decision, Some(Decision::Incomplete { .. })), "{receipt:#?}");
        receipt.kernel_key.to_hex()
    };
    requests.iter().map(of).collect()
}

/// Two processes, sixty-four callers and two sibling tokens use up what is left, to the last call.
fn use_up(
    world: &mut World,
    runtime: &Runtime,
    survivor: &Server,
    tokens: &Tokens,
    chance: &mut Chance,
) {
    let plan = tokens.plan(u64::from(SHARED));
    let mut other = Server::start(&mut world.serve_command("b.sock"));
    let ours = Load::start(runtime, endpoint(survivor), &plan, "last-a".to_owned(), chance);
    let theirs = Load::start(runtime, endpoint(&other), &plan, "last-b".to_owned(), chance);
    ours.finish(runtime, world);
    theirs.finish(runtime, world);
    other.end();
    let snapshot = world.check("used up");
    assert!(snapshot.intents.is_empty());
    assert_eq!(snapshot.budgets[&("parent".to_owned(), 1)].0, u64::from(SHARED));
    assert!(snapshot.notes.len() <= usize::try_from(SHARED).unwrap());
}
