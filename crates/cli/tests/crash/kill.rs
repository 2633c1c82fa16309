//! A process that is killed again and again, and picks up where it was.

use std::time::Instant;

use chio_core::receipt::Decision;
use chio_testkit::process::Server;
use chio_testkit::token::grant;

use crate::check::Counted;
use crate::load::{Load, Plan, runtime};
use crate::support::{Chance, World, at_most, endpoint, for_money};

/// How often the process is killed under load, and how often before it listens.
const KILLS: usize = 18;
const EARLY_KILLS: usize = 9;
/// What one load calls at most.
const CALLS: u64 = 250;
/// A number of calls that is used up half-way.
const FEW: u32 = 120;

/// Tokens with and without budgets, and what is to come of the budgets.
fn plan(world: &mut World) -> Plan {
    let free = world.token("free", vec![grant("echo"), grant("count_to"), grant("note_put")]);
    let many =
        world.token("many", vec![at_most("note_put", 100_000), for_money("paid", 1_000_000)]);
    let few = world.token("few", vec![at_most("note_put", FEW)]);
    world.counted = vec![
        Counted {
            capability: "many",
            grant: 0,
            presented: &["many"],
            calls: Some(100_000),
            cents: None,
        },
        Counted {
            capability: "many",
            grant: 1,
            presented: &["many"],
            calls: None,
            cents: Some(1_000_000),
        },
        Counted {
            capability: "few",
            grant: 0,
            presented: &["few"],
            calls: Some(u64::from(FEW)),
            cents: None,
        },
    ];
    let calls = vec![
        ("echo", free.clone()),
        ("count_to", free.clone()),
        ("note_put", free),
        ("note_put", many.clone()),
        ("note_put", few),
        ("paid", many),
    ];
    Plan { calls, connections: 4, callers: 12, most: CALLS, bulk: 0, reconnect: false }
}

#[test]
fn a_kernel_that_is_killed_at_any_moment_loses_nothing_it_answered_and_records_all_it_did() {
    let mut chance = Chance::of("kill");
    let (mut world, runtime) = (World::new(), runtime());
    let start = Instant::now();
    let mut server = world.serve();
    let startup = u64::try_from(start.elapsed().as_millis()).unwrap().max(2);
    let plan = plan(&mut world);
    let (mut early, mut answered) = (0, 0);
    for round in 0..KILLS {
        let name = format!("k{round}");
        let load = Load::start(&runtime, endpoint(&server), &plan, name.clone(), &mut chance);
        // Now and then before anything is answered.
        load.wait_for(chance.within(0, CALLS / 2).saturating_sub(20), &mut chance);
        server.kill();
        answered += load.finish(&runtime, &mut world);
        check_dead(&mut world, &mut chance, &name);
        // Before it listens, while it recovers or even earlier.
        while early < EARLY_KILLS * (round + 1) / KILLS {
            let mut doomed = Server::spawn(&mut world.serve_command("a.sock"));
            chance.pause(0, startup);
            doomed.kill();
            early += 1;
            check_dead(&mut world, &mut chance, &format!("early kill {early}"));
        }
        server = world.serve();
        let snapshot = world.check(&format!("after {name}, restarted"));
        if round % 6 == 0 {
            world.check_index(&runtime, &name);
        }
        assert!(snapshot.intents.is_empty(), "calls are left open: {:#?}", snapshot.intents);
    }
    assert_eq!(early, EARLY_KILLS);
    assert!(answered > KILLS, "hardly anything was answered");
    end_well(&mut world, server, &runtime, &plan, &mut chance);
}

/// Checks what a crash has left, before another kernel mends it.
#[track_caller]
fn check_dead(world: &mut World, chance: &mut Chance, when: &str) {
    world.check(&format!("{when}, dead"));
    // An audit in place folds the write-ahead log into the database, so that the next start finds
    // another state than the crash has left.
    if chance.once_in(3) {
        world.audit(when);
    } else {
        world.audit_copy(when);
    }
}

/// Uses up what is left of the small budget, ends in good order and looks at everything.
fn end_well(
    world: &mut World,
    mut server: Server,
    runtime: &tokio::runtime::Runtime,
    plan: &Plan,
    chance: &mut Chance,
) {
    let calls = plan.calls.iter().filter(|(_, token)| token.id == "few").cloned().collect();
    let rest = Plan { calls, most: u64::from(FEW) + 20, ..plan.clone() };
    let load = Load::start(runtime, endpoint(&server), &rest, "last".to_owned(), chance);
    load.finish(runtime, world);
    server.end();
    let snapshot = world.check("in the end");
    world.audit("in the end");
    world.check_index(runtime, "in the end");
    assert!(snapshot.intents.is_empty());
    assert_eq!(snapshot.budgets[&("few".to_owned(), 0)].0, u64::from(FEW));
    let incomplete = |it: &&std::sync::Arc<crate::snapshot::Entry>| {
        matches!(it.receipt.decision, Some(Decision::Incomplete { .. }))
    };
    let recovered = snapshot.receipts.iter().filter(incomplete).count();
    assert!(recovered > 0, "no kill has hit a running call: the test tests nothing");
}
