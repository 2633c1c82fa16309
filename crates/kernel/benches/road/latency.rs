//! How long one caller waits.

use std::sync::Arc;
use std::time::Instant;

use crate::Scale;
use crate::rig::{Place, Rig, Tool};
use crate::throughput::THREADS;

pub(crate) fn one_caller(scale: Scale) {
    for (name, place) in [("in memory", Place::Memory), ("durable", Place::Indexed)] {
        let rig = Rig::new(place, THREADS);
        let mut times = rig.runtime.block_on(async {
            let (start, mut times) = (Instant::now(), Vec::new());
            while start.elapsed() < scale.turn * 2 {
                let (tool, arguments) = Tool::Echo.arguments(0);
                let call = rig.call(tool, arguments);
                let before = Instant::now();
                rig.kernel.evaluate(call, Arc::clone(&rig.caller)).await.unwrap();
                times.push(before.elapsed().as_secs_f64() * 1e6);
            }
            times
        });
        times.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
        println!(
            "one caller, {name}: p50 {:.0} µs, p99 {:.0} µs ({} calls)",
            at(0.5),
            at(0.99),
            times.len()
        );
    }
}
