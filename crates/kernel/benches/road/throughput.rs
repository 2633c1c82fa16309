//! How many calls a second.

use crate::rig::{Place, Rig, Tool};
use crate::{Scale, floor, median, report};

/// Callers at once where many are meant.
const MANY: usize = 256;
/// Threads of the runtime, besides the store's own.
pub(crate) const THREADS: usize = 2;

/// One core, no durability: the road itself against the one thing it cannot do without.
pub(crate) fn in_memory(scale: Scale) {
    let rig = Rig::new(Place::Memory, 0);
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..scale.turns {
        floors.push(floor::signing(scale.turn));
        ours.push(rig.rate(Tool::Echo, 1, scale.turn));
    }
    report(
        "evaluate echo, in memory, one core / raw signing",
        median(floors),
        median(ours),
        Some(0.5),
    );
}

/// Many callers, every receipt synced, against the same callers without a disk.
pub(crate) fn durable(scale: Scale) {
    against_memory(scale, Tool::Echo, "durable echo, 256 callers, unindexed / in memory", 0.5);
}

/// The same with an intent before and a receipt after.
pub(crate) fn durable_effects(scale: Scale) {
    against_memory(
        scale,
        Tool::NotePut,
        "durable note_put, 256 callers, unindexed / in memory",
        0.5,
    );
}

fn against_memory(scale: Scale, tool: Tool, what: &str, goal: f64) {
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    let durable = Rig::new(Place::Unindexed, THREADS);
    for _ in 0..scale.turns {
        // A fresh one each turn: what it keeps is in memory.
        floors.push(Rig::new(Place::Memory, THREADS).rate(tool, MANY, scale.turn));
        ours.push(durable.rate(tool, MANY, scale.turn));
    }
    report(what, median(floors), median(ours), Some(goal));
}

/// A long run with the index built right behind.
pub(crate) fn long_run(scale: Scale) {
    let floor = Rig::new(Place::Memory, THREADS).rate(Tool::Echo, MANY, scale.turn);
    let rig = Rig::new(Place::Indexed, THREADS);
    let ours = rig.rate(Tool::Echo, MANY, scale.long);
    let seconds = scale.long.as_secs_f64();
    let what = format!("durable echo, 256 callers, indexed, {seconds:.0} s / in memory");
    report(&what, floor, ours, Some(0.3));
}
