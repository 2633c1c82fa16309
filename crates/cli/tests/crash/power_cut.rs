//! Power cuts: the process dies, and with it all that it had not synced.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Command};

use chio_core::receipt::Decision;
use chio_edge::Endpoint;
use chio_native_edge::NativeClient;
use chio_testkit::process::{Server, request, until};
use chio_testkit::token::grant;
use tokio::runtime::Runtime;

use crate::check::Counted;
use crate::load::{Load, Plan, params, runtime};
use crate::shim::{Disk, Spared};
use crate::support::{Chance, World, at_most, endpoint, for_money};

/// How often the power is cut under load.
const CUTS: usize = 10;
/// What one load calls at most.
const CALLS: u64 = 150;
/// The same, of texts that are so long.
const LARGE_CALLS: u64 = 700;
const LARGE: usize = 15_000;
/// More syncs than a start and a few calls take.
const MANY_SYNCS: u64 = 200;

const MANY: u64 = 100_000;
const SOCKET: &str = "a.sock";
const SAID: &str = "said";

/// Tokens with and without budgets, and what is to come of the budgets.
fn plan(world: &mut World) -> Plan {
    let calls = u32::try_from(MANY).unwrap();
    let grants =
        vec![grant("echo"), at_most("note_put", calls), for_money("paid", MANY), grant("count_to")];
    let token = world.token("all", grants);
    let free = world.token("free", vec![grant("note_put")]);
    let counted = |grant, calls, cents| Counted {
        capability: "all",
        grant,
        presented: &["all"],
        calls,
        cents,
    };
    world.counted = vec![counted(1, Some(MANY), None), counted(2, None, Some(MANY))];
    let tools = ["echo", "note_put", "paid", "count_to"];
    let mut calls = tools.map(|tool| (tool, token.clone())).to_vec();
    // A side effect is recorded before it happens also where no budget is debited.
    calls.push(("note_put", free));
    Plan { calls, connections: 3, callers: 8, most: CALLS, bulk: 0, reconnect: false }
}

/// A server that this test starts under a disk. To run another program, such as one that does not
/// sync by itself, is to change this.
fn command(world: &World) -> Command {
    world.serve_command(SOCKET)
}

#[test]
fn what_was_not_synced_may_be_lost_but_nothing_that_was_answered_or_done() {
    let mut chance = Chance::of("power cut");
    let (mut world, runtime) = (World::new(), runtime());
    let Some(disk) = Disk::of(&world, "power cuts") else { return };
    let mut planned = None;
    let mut answered = 0;
    for round in 0..CUTS {
        let mut server = Server::start(disk.under(&mut command(&world)));
        let plan = planned.get_or_insert_with(|| plan(&mut world));
        let snapshot = world.check(&format!("start {round}"));
        assert!(snapshot.intents.is_empty(), "calls are left open: {:#?}", snapshot.intents);
        // Every third time so much that the database takes over what its log has.
        let large = round % 3 == 2;
        let (most, bulk) = if large { (LARGE_CALLS, LARGE) } else { (CALLS, 0) };
        let plan = Plan { most, bulk, ..plan.clone() };
        let load =
            Load::start(&runtime, endpoint(&server), &plan, format!("p{round}"), &mut chance);
        load.wait_for(chance.within(most / 10, most / 2), &mut chance);
        server.kill();
        answered += load.finish(&runtime, &mut world);
        let spared = if chance.once_in(2) { Spared::None } else { Spared::Some };
        disk.cut(spared, &mut chance);
        let when = format!("cut {round}, spared: {spared:?}");
        world.check(&when);
        world.audit_copy(&when);
        // This also folds the log into the database, so not always.
        if round % 3 == 1 {
            world.check_index(&runtime, &when);
        }
    }
    assert!(answered > CUTS, "hardly anything was answered");
    let mut server = world.serve();
    world.check("in the end");
    server.end();
    world.audit("in the end");
}

/// Only when all of the database's own log is in the database does the log begin anew. Whatever was
/// in it must be durable there by then.
#[test]
fn a_power_cut_after_the_databases_log_began_anew_loses_nothing() {
    let mut chance = Chance::of("log begun anew");
    let (mut world, runtime) = (World::new(), runtime());
    let Some(disk) = Disk::of(&world, "power cuts after a log began anew") else { return };
    let mut server = Server::start(disk.under(&mut command(&world)));
    let plan = Plan { most: MANY, bulk: LARGE, ..plan(&mut world) };
    let load = Load::start(&runtime, endpoint(&server), &plan, "w".to_owned(), &mut chance);
    load.wait_for(1, &mut chance);
    let first = log_number(&world);
    until("a log that begins anew", || (log_number(&world) != first).then_some(()));
    load.wait_for(chance.within(0, 60), &mut chance);
    server.kill();
    load.finish(&runtime, &mut world);
    disk.cut(Spared::None, &mut chance);
    world.check("cut");
    world.audit_copy("cut");
    let mut server = world.serve();
    world.check("restarted");
    server.end();
}

/// How often the database's own log has begun anew: a number in its header.
fn log_number(world: &World) -> Vec<u8> {
    let mut header = [0; 16];
    let read = File::open(world.data().join("store.db-wal"))
        .and_then(|mut log| log.read_exact(&mut header));
    read.unwrap();
    header[12..].to_vec()
}

/// The check would find a loss if there was one: on a disk that only pretends to sync, there is.
#[test]
fn a_disk_that_lies_about_syncs_is_found_out() {
    let mut chance = Chance::of("lying disk");
    let (mut world, runtime) = (World::new(), runtime());
    let Some(disk) = Disk::of(&world, "power cuts on a disk that lies") else { return };
    world.serve().end();
    let plan = plan(&mut world);
    let mut lied_to = command(&world);
    let mut server = Server::start(disk.under(&mut lied_to).env("CHIO_SHIM_FORGET", "store.db"));
    let load = Load::start(&runtime, endpoint(&server), &plan, "x".to_owned(), &mut chance);
    let answered = load.finish(&runtime, &mut world);
    assert_eq!(u64::try_from(answered).unwrap(), CALLS);
    server.kill();
    assert_eq!(world.problems(), Vec::<String>::new(), "before the power is cut, all is well");
    disk.cut(Spared::None, &mut chance);
    let found = world.problems();
    let lost = |what: &str| found.iter().filter(|problem| problem.contains(what)).count();
    assert_eq!(lost("lost: the receipt of answer"), answered, "{found:#?}");
    assert!(lost("was put without a record") > 0, "{found:#?}");
}

/// From the first byte of a store on: a power cut before each single sync of a first start and of
/// a few calls.
#[test]
fn wherever_the_power_is_cut_in_a_first_start_and_its_first_calls_the_store_starts_again() {
    let (mut chance, runtime) = (Chance::of("first start"), runtime());
    let mut answers = Vec::new();
    for sync in 1.. {
        assert!(sync < MANY_SYNCS, "it never came to an end: {answers:?}");
        let mut world = World::new();
        let Some(disk) = Disk::of(&world, "power cuts in a first start") else { return };
        let mut planned = None;
        let mut doomed = Doomed::spawn(&world, &disk, sync);
        let all = doomed.listens(&world) && few_calls(&mut world, &mut planned, &runtime, "one");
        doomed.kill();
        answers.push(world.record.answers.len());
        disk.cut(Spared::None, &mut chance);
        let when = format!("cut before sync {sync}");
        let mut server = world.serve();
        let snapshot = world.check(&when);
        assert!(snapshot.intents.is_empty(), "{when}: {:#?}", snapshot.intents);
        assert!(few_calls(&mut world, &mut planned, &runtime, "two"), "{when}: no answer");
        world.check(&format!("{when}, after more calls"));
        world.audit(&when);
        server.kill();
        if all {
            break;
        }
    }
    // It was cut before, between and after the calls.
    for count in 0..=3 {
        assert!(answers.contains(&count), "{answers:?}");
    }
}

/// Three calls, one after the other. False when the server did not live to answer them all.
fn few_calls(world: &mut World, planned: &mut Option<Plan>, runtime: &Runtime, name: &str) -> bool {
    let plan = planned.get_or_insert_with(|| plan(world)).clone();
    for (tool, token) in &plan.calls[1..4] {
        let call = runtime.block_on(async {
            let client = NativeClient::connect(&Endpoint::Unix(world.folder.path(SOCKET))).await?;
            let id = format!("{name}-{tool}");
            let params = params(tool, &id, 0, &mut Chance::default());
            client.call(request(&id, token, tool, params), |_, _| ()).await
        });
        let Ok(answer) = call else { return false };
        assert_eq!(answer.receipt.decision, Some(Decision::Allow));
        world.record.answers.push(answer);
    }
    true
}

/// A server that may die before it listens. It is killed when dropped.
struct Doomed(Child);

impl Doomed {
    /// Starts a server whose power is cut before this sync, counted from 1.
    fn spawn(world: &World, disk: &Disk, sync: u64) -> Self {
        let mut command = command(world);
        disk.under(&mut command).env("CHIO_SHIM_CUT", sync.to_string());
        let said = File::create(world.folder.path(SAID)).unwrap();
        Self(command.stderr(said).spawn().unwrap())
    }

    /// Waits until it listens or is dead.
    fn listens(&mut self, world: &World) -> bool {
        until("a server that lives or dies", || {
            let dead = self.0.try_wait().unwrap().is_some();
            let listens = world.folder.read(SAID).contains("listening on");
            (dead || listens).then_some(listens)
        })
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        self.kill();
    }
}
