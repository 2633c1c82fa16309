//! Two processes on one store, of which either is killed again and again, while the time of day
//! jumps forth and back under both.
//!
//! `CHIO_CRASH_KILLS` says how often; `cargo xtask long crash` says a thousand.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;

use chio_core::receipt::Decision;
use chio_testkit::process::Server;
use chio_testkit::token::grant;
use tokio::runtime::Runtime;

use crate::check::Counted;
use crate::load::{Load, Plan, runtime};
use crate::shim::library;
use crate::support::{Chance, World, at_most, endpoint};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/shim/clock.c");
/// Names how often a process is killed.
const KILLS: &str = "CHIO_CRASH_KILLS";
/// How often without it.
const FEW_KILLS: usize = 12;
/// What one load calls at most, on each process.
const CALLS: u64 = 80;
/// How far the time jumps. Tokens are valid for longer.
const FARTHEST: u64 = 1200;
/// Calls that budgets allow: more than are made.
const MANY: u32 = 1_000_000;

/// The time of day of the processes under test.
struct TimeOfDay {
    library: PathBuf,
    file: PathBuf,
}

impl TimeOfDay {
    fn of(world: &World) -> Option<Self> {
        let library = library(world, SOURCE, "clock.so", "the clock that jumps")?;
        let file = world.folder.path("ahead");
        fs::write(&file, 0_i64.to_ne_bytes()).unwrap();
        Some(Self { library, file })
    }

    fn under<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("LD_PRELOAD", &self.library).env("CHIO_SHIM_CLOCK", &self.file)
    }

    fn jump(&self, chance: &mut Chance) {
        let ahead = i64::try_from(chance.within(0, FARTHEST)).unwrap();
        // In place: the processes look at the very bytes.
        let file = File::options().write(true).open(&self.file).unwrap();
        file.write_all_at(&ahead.to_ne_bytes(), 0).unwrap();
    }

    fn serve(&self, world: &World, socket: &str) -> Server {
        Server::start(self.under(&mut world.serve_command(socket)))
    }
}

fn plan(world: &mut World) -> Plan {
    let free = world.token("free", vec![grant("echo"), grant("note_put")]);
    let many = world.token("many", vec![at_most("note_put", MANY)]);
    world.counted = vec![Counted {
        capability: "many",
        grant: 0,
        presented: &["many"],
        calls: Some(u64::from(MANY)),
        cents: None,
    }];
    let calls = vec![("echo", free.clone()), ("note_put", free), ("note_put", many)];
    Plan { calls, connections: 2, callers: 8, most: CALLS, bulk: 0, reconnect: false }
}

#[test]
fn a_clock_that_jumps_while_processes_are_killed_loses_doubles_and_hides_nothing() {
    let mut chance = Chance::of("clock");
    let kills = std::env::var(KILLS).map_or(FEW_KILLS, |kills| kills.parse().unwrap());
    let (mut world, runtime) = (World::new(), runtime());
    let Some(time) = TimeOfDay::of(&world) else { return };
    let mut servers = ["a.sock", "b.sock"].map(|socket| (socket, time.serve(&world, socket)));
    let plan = plan(&mut world);
    let mut answered = 0;
    for round in 0..kills {
        let loads = servers.each_ref().map(|(socket, server)| {
            let name = format!("{socket}{round}");
            Load::start(&runtime, endpoint(server), &plan, name, &mut chance)
        });
        for _ in 0..chance.within(1, 4) {
            time.jump(&mut chance);
            chance.pause(0, 30);
        }
        let dying = usize::from(chance.once_in(2));
        let (socket, doomed) = &mut servers[dying];
        doomed.kill();
        time.jump(&mut chance);
        let successor = time.serve(&world, socket);
        *doomed = successor;
        answered += finish(loads, &runtime, &mut world);
        let when = format!("kill {round}");
        world.check(&when);
        if kills <= FEW_KILLS || round % 50 == 0 {
            world.audit(&when);
        }
    }
    end_well(&mut world, servers, answered);
}

fn finish(loads: [Load; 2], runtime: &Runtime, world: &mut World) -> usize {
    loads.into_iter().map(|load| load.finish(runtime, world)).sum()
}

/// Ends in good order, and looks at everything.
fn end_well(world: &mut World, servers: [(&str, Server); 2], answered: usize) {
    world.wait_until_closed();
    for (_, mut server) in servers {
        server.end();
    }
    let snapshot = world.check("in the end");
    world.audit("in the end");
    let decisions = || snapshot.receipts.iter().map(|it| it.receipt.decision.as_ref());
    let allowed = decisions().filter(|it| matches!(it, Some(Decision::Allow))).count();
    assert!(allowed > answered / 4, "hardly anything ran: {allowed} of {answered}");
    let recovered = decisions().any(|it| matches!(it, Some(Decision::Incomplete { .. })));
    assert!(recovered, "no kill has hit a running call: the test tests nothing");
}
