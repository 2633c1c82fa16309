//! A disk that is full or broken for a while: nothing runs unrecorded, the process survives, and
//! service resumes by itself.

use std::fs;

use chio_core::receipt::Decision;
use chio_native_edge::NativeClient;
use chio_testkit::process::{Server, request, until};
use chio_testkit::token::grant;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::check::Counted;
use crate::load::{Load, Plan, runtime};
use crate::shim::{Disk, Fault, Spared};
use crate::snapshot::Entry;
use crate::support::{Chance, World, at_most, endpoint, for_money};

/// How often the disk fails under load.
const FAILURES: usize = 5;
/// How many more answers show that service has resumed.
const RESUMED: u64 = 20;
const MANY: u64 = 100_000;

fn plan(world: &mut World) -> Plan {
    let calls = u32::try_from(MANY).unwrap();
    let grants = vec![
        grant("echo"),
        at_most("note_put", calls),
        for_money("paid", MANY),
        at_most("sleep", calls),
        grant("count_to"),
    ];
    let token = world.token("all", grants);
    let counted = |grant, calls, cents| Counted {
        capability: "all",
        grant,
        presented: &["all"],
        calls,
        cents,
    };
    world.counted = vec![
        counted(1, Some(MANY), None),
        counted(2, None, Some(MANY)),
        counted(3, Some(MANY), None),
    ];
    let tools = ["echo", "note_put", "paid", "sleep", "count_to"];
    let mut calls = tools.map(|tool| (tool, token.clone())).to_vec();
    // A side effect is recorded before it happens also where no budget is debited.
    calls.push(("note_put", world.token("free", vec![grant("note_put")])));
    Plan { calls, connections: 3, callers: 6, most: MANY, bulk: 0, reconnect: true }
}

#[test]
fn a_disk_that_is_full_for_a_while_lets_nothing_run_unrecorded() {
    fails_for_a_while(Fault::Full, "full disk");
}

#[test]
fn a_disk_that_cannot_sync_for_a_while_lets_nothing_run_unrecorded() {
    fails_for_a_while(Fault::Sync, "broken sync");
}

fn fails_for_a_while(fault: Fault, test: &str) {
    let mut chance = Chance::of(test);
    let (mut world, runtime) = (World::new(), runtime());
    let Some(disk) = Disk::of(&world, test) else { return };
    let mut server = Server::start(disk.under(&mut world.serve_command("a.sock")));
    let plan = plan(&mut world);
    let load = Load::start(&runtime, endpoint(&server), &plan, "l".to_owned(), &mut chance);
    for round in 0..FAILURES {
        load.wait_for(RESUMED, &mut chance);
        disk.fail(fault);
        chance.pause(10, 250);
        // Also while it fails and calls come in.
        world.check(&format!("failure {round}"));
        disk.mend();
    }
    load.wait_for(RESUMED, &mut chance);
    load.stop(&runtime, &mut world);
    ends_while_the_disk_fails(&mut world, &disk, fault, &server, &runtime, &plan);
    world.wait_until_closed();
    world.check("mended");
    world.audit("mended");
    world.check_index(&runtime, "mended");
    let load = Load::start(&runtime, endpoint(&server), &plan, "d".to_owned(), &mut chance);
    load.wait_for(RESUMED, &mut chance);
    disk.fail(fault);
    chance.pause(5, 100);
    server.kill();
    load.stop(&runtime, &mut world);
    disk.mend();
    disk.cut(Spared::Some, &mut chance);
    // It is made again; what the check above has done to it was not on this disk.
    for name in ["index.db", "index.db-wal"] {
        let _ = fs::remove_file(world.data().join(name));
    }
    dead_on_a_failing_disk(&mut world);
}

/// A call that ends while its receipt cannot be written is not answered, and gets a receipt that
/// says so when the disk works again.
fn ends_while_the_disk_fails(
    world: &mut World,
    disk: &Disk,
    fault: Fault,
    server: &Server,
    runtime: &Runtime,
    plan: &Plan,
) {
    world.wait_until_closed();
    let token = &plan.calls[0].1;
    let client = runtime.block_on(NativeClient::connect(&endpoint(server))).unwrap();
    let mut lengths = [700, 4000, 20_000].into_iter();
    let open = loop {
        let ms = lengths.next().expect("a call that is slower than this test");
        let (late, client) = (request("late", token, "sleep", json!({"ms": ms})), client.clone());
        let call = runtime.spawn(async move { client.call(late, |_, _| ()).await });
        let open = until("the call to begin", || {
            let begun = world.snapshot().intents;
            let begun = begun.first().map(|open| open.reservation.intent.request_id.clone());
            begun.map(Some).or_else(|| call.is_finished().then_some(None))
        });
        disk.fail(fault);
        match (open, runtime.block_on(call).unwrap()) {
            (Some(open), Err(_)) => break open,
            // It ended before the disk failed.
            (_, Ok(answer)) => world.record.answers.push(answer),
            (None, Err(error)) => panic!("the call never began: {error}"),
        }
        disk.mend();
    };
    let still: Vec<_> = world.snapshot().intents;
    assert_eq!(still.len(), 1, "the disk fails, and yet: {still:#?}");
    disk.mend();
    world.wait_until_closed();
    let snapshot = world.snapshot();
    let of_it = |entry: &&std::sync::Arc<Entry>| {
        let metadata = entry.receipt.metadata.as_ref().unwrap();
        metadata["receipt_context"]["request_id"] == open.as_str()
    };
    let found: Vec<_> =
        snapshot.receipts.iter().filter(of_it).map(|it| &it.receipt.decision).collect();
    assert!(matches!(*found, [Some(Decision::Incomplete { .. })]), "{found:#?}");
}

/// A process that dies on a failing disk, with the power, leaves a store that holds.
fn dead_on_a_failing_disk(world: &mut World) {
    world.check("dead");
    world.audit_copy("dead");
    let mut restarted = world.serve();
    let snapshot = world.check("restarted");
    assert!(snapshot.intents.is_empty());
    restarted.end();
    world.audit("in the end");
}
