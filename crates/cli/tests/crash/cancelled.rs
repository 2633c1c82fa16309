//! Callers that vanish while their streams begin.

use std::time::Duration;

use chio_core::receipt::Decision;
use chio_testkit::process::{Wire, until};
use chio_testkit::token::grant;
use serde_json::json;

use crate::support::{Chance, World};

/// How many callers there are at once, and how often each calls.
const CALLERS: u64 = 8;
const CALLS: u64 = 60;

/// A stream's intent is written when its first chunk comes. A call that is cancelled at that very
/// moment has one receipt, and its intent is closed by it.
#[test]
fn a_stream_that_is_cancelled_while_its_intent_is_written_has_one_receipt() {
    let mut chance = Chance::of("called off");
    let mut world = World::new();
    let mut server = world.serve();
    let token = world.token("free", vec![grant("count_to")]);
    let at = server.endpoint();
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (mut chance, token, at) = (chance.fork(), &token, &at);
            scope.spawn(move || {
                for call in 0..CALLS {
                    let mut wire = Wire::connect(at);
                    let id = format!("{caller}-{call}");
                    wire.send_call(&id, token, "count_to", json!({"n": 50}));
                    chance.pause(0, 4);
                }
            });
        }
    });
    // Whatever began has ended when every call has its receipt.
    let (mut seen, mut same) = (0, 0);
    until("the calls to end", || {
        let count = world.snapshot().receipts.len();
        same = if count == seen { same + 1 } else { 0 };
        seen = count;
        std::thread::sleep(Duration::from_millis(20));
        (same > 20).then_some(())
    });
    let snapshot = world.check("called off");
    let cancelled = |it: &&std::sync::Arc<crate::snapshot::Entry>| {
        matches!(it.receipt.decision, Some(Decision::Cancelled { .. }))
    };
    assert!(snapshot.receipts.iter().filter(cancelled).count() > 0, "no call was called off");
    assert!(snapshot.intents.is_empty(), "{:#?}", snapshot.intents);
    server.kill();
    world.serve().end();
    world.check("restarted");
    world.audit("restarted");
}
