//! The receipt log: when checkpoints are signed, how a restart goes on, what can be proved.

use std::time::Duration;

use chio_core::canonical;
use chio_core::merkle::Frontier;
use chio_core::signed::Signed;
use chio_kernel::proof::{consistency, inclusion};
use serde_json::json;

use crate::support::ledger::DELAY;
use crate::support::tokens::token;
use crate::support::{NOW, Setup, World, grant};

/// A world that signs a checkpoint after this many receipts.
async fn batches_of(size: usize) -> World {
    Setup::default().config(|it| it.checkpoint_size = size).start().await
}

/// Lets other tasks go on until there are this many checkpoints.
async fn checkpoints(world: &World, expected: usize) {
    for _ in 0..1000 {
        if world.checkpoints().await.len() >= expected {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(world.checkpoints().await.len(), expected);
}

async fn echo(world: &World, calls: usize) {
    for n in 0..calls {
        world.run_tool("echo", json!(n)).await;
    }
}

/// Checks every checkpoint and every proof of the log.
async fn assert_proved(world: &World) {
    let (log, checkpoints) = (world.log_id(), world.checkpoints().await);
    let mut chain = Frontier::default();
    for (index, checkpoint) in checkpoints.iter().enumerate() {
        checkpoint.check_signature().unwrap();
        checkpoint.check_chain_root(&mut chain).unwrap();
        assert_eq!(checkpoint.body.kernel_key, *world.kernel.public_key());
        assert_eq!(checkpoint.body.issued_at, NOW);
        if let Some(previous) = index.checked_sub(1).map(|it| &checkpoints[it]) {
            checkpoint.check_follows(previous).unwrap();
        }
        for earlier in &checkpoints[..=index] {
            let (from, to) = (earlier.body.checkpoint_seq, checkpoint.body.checkpoint_seq);
            let proof = consistency(&*world.store, &log, from, to).await.unwrap();
            assert!(checkpoint.extends(earlier, &proof), "{from} to {to}");
        }
    }
    let covered = checkpoints.last().map_or(0, |last| last.body.batch_end_seq);
    for (seq, logged) in (1..).zip(world.logged().await) {
        logged.verify().unwrap();
        let proved = inclusion(&*world.store, &log, seq).await.unwrap();
        assert_eq!(proved.is_some(), seq <= covered, "{seq}");
        if let Some((checkpoint, proof)) = proved {
            assert!(proof.verify(&checkpoint, &canonical::to_vec(&logged).unwrap()), "{seq}");
        }
    }
}

#[tokio::test]
async fn a_checkpoint_is_signed_after_so_many_receipts() {
    let world = batches_of(3).await;
    echo(&world, 2).await;
    checkpoints(&world, 0).await;
    echo(&world, 1).await;
    checkpoints(&world, 1).await;
    echo(&world, 5).await;
    checkpoints(&world, 2).await;
    let body = world.checkpoints().await.remove(1).body;
    assert_eq!((body.batch_start_seq, body.batch_end_seq, body.tree_size), (4, 6, 3));
    assert_proved(&world).await;
    assert!(world.audit().await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_is_signed_after_some_time() {
    let beat = Duration::from_secs(1);
    let world = Setup::default().config(|it| it.checkpoint_interval = beat).start().await;
    echo(&world, 2).await;
    tokio::time::sleep(beat / 2).await;
    assert!(world.checkpoints().await.is_empty());
    tokio::time::sleep(beat).await;
    assert_eq!(world.checkpoints().await.len(), 1);
    tokio::time::sleep(beat * 5).await;
    assert_eq!(world.checkpoints().await.len(), 1, "none over nothing");
    echo(&world, 1).await;
    tokio::time::sleep(beat * 2).await;
    assert_eq!(world.checkpoints().await.len(), 2);
    assert_proved(&world).await;
}

#[tokio::test(start_paused = true)]
async fn full_batches_do_not_put_off_the_beat() {
    let beat = Duration::from_secs(10);
    let setup = Setup::default().config(|it| {
        it.checkpoint_interval = beat;
        it.checkpoint_size = 2;
    });
    let world = setup.start().await;
    // A full batch every 6 seconds, one receipt over.
    echo(&world, 1).await;
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(6)).await;
        echo(&world, 2).await;
    }
    let covered = world.checkpoints().await.last().unwrap().body.batch_end_seq;
    assert!(covered >= 7, "{covered} of 9");
    tokio::time::sleep(beat).await;
    assert_eq!(world.checkpoints().await.last().unwrap().body.batch_end_seq, 9);
    assert_proved(&world).await;
}

#[tokio::test]
async fn a_drain_signs_for_all_the_rest() {
    let world = batches_of(4).await;
    echo(&world, 6).await;
    world.kernel.drain(Duration::ZERO).await.unwrap();
    let last = world.checkpoints().await.pop().unwrap();
    assert_eq!(last.body.batch_end_seq, 6);
    assert_proved(&world).await;
    let report = world.audit().await;
    assert!(report.is_clean());
    let log = &report.logs[0];
    let found = (log.entries, log.checkpoints, log.pending, log.certified);
    assert_eq!(found, (6, 2, 0, true));
}

#[tokio::test]
async fn a_restart_goes_on_with_the_same_chain() {
    let mut world = batches_of(3).await;
    let log_id = world.log_id();
    for round in 1..=3 {
        echo(&world, 4).await;
        let mut next = world.shut_down().await;
        next.config.checkpoint_size = 3;
        world = next.start().await;
        assert_eq!(world.log_id(), log_id);
        assert_eq!(world.logged().await.len(), round * 4);
    }
    let ended = world.run_tool("echo", json!(1)).await;
    assert_eq!(ended.seq, 13);
    world.kernel.drain(Duration::ZERO).await.unwrap();
    assert_proved(&world).await;
    assert!(world.audit().await.is_clean());
}

#[tokio::test]
async fn a_checkpoint_that_failed_is_made_up_for_by_the_next() {
    let world = batches_of(2).await;
    world.ledger.checkpointing.fail(true);
    echo(&world, 5).await;
    checkpoints(&world, 0).await;
    assert!(world.kernel.drain(Duration::ZERO).await.is_err());
    world.ledger.checkpointing.fail(false);
    world.kernel.drain(Duration::ZERO).await.unwrap();
    assert_eq!(world.checkpoints().await.len(), 3);
    assert_proved(&world).await;
    assert!(world.audit().await.is_clean());
}

#[tokio::test]
async fn a_start_signs_for_what_an_earlier_process_did_not() {
    let world = batches_of(10).await;
    echo(&world, 3).await;
    world.ledger.checkpointing.fail(true);
    assert!(world.kernel.drain(Duration::ZERO).await.is_err());
    let next = world.let_go().await.start().await;
    assert_eq!(next.checkpoints().await.len(), 1);
    assert_proved(&next).await;
}

#[tokio::test]
async fn a_kernel_does_not_start_on_a_log_whose_last_checkpoint_does_not_hold() {
    use chio_kernel::store::Ledger as _;
    let world = batches_of(2).await;
    echo(&world, 2).await;
    checkpoints(&world, 1).await;
    let mut forged = world.checkpoints().await.remove(0);
    forged.body.checkpoint_seq = 2;
    forged.body.batch_start_seq = 3;
    forged.body.batch_end_seq = 4;
    world.ledger.checkpoint(forged).await.unwrap();
    let _ = world.kernel.drain(Duration::ZERO).await;
    let next = world.let_go().await;
    let problem = next.try_start().await.map(|_| ()).unwrap_err();
    assert!(problem.to_string().contains("does not hold"), "{problem}");
}

#[tokio::test]
async fn many_calls_at_once_leave_no_gap() {
    let world = std::sync::Arc::new(batches_of(7).await);
    let token = token("cap-1", &[grant("*")]);
    let tasks: Vec<_> = (0..100)
        .map(|n| {
            let (world, token) = (std::sync::Arc::clone(&world), token.clone());
            tokio::spawn(async move { world.run(world.call(&token, "effect", json!(n))).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    world.kernel.drain(Duration::ZERO).await.unwrap();
    assert_eq!(world.checkpoints().await.last().unwrap().body.batch_end_seq, 100);
    assert_proved(&world).await;
    assert!(world.audit().await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_receipt_whose_answer_is_late_leaves_no_gap() {
    let beat = Duration::from_secs(1);
    let world = Setup::default().config(|it| it.checkpoint_interval = beat).start().await;
    let call = world.call(&token("cap-1", &[grant("*")]), "echo", json!(1));
    let caller = std::sync::Arc::new(world.caller());
    // It is durable as number 1, but the call that appended it does not know yet.
    world.ledger.appending.answer_late_once();
    let late = world.spawn(call, &caller);
    world.until("append").await;
    assert_eq!(world.run_tool("echo", json!(2)).await.seq, 2);
    tokio::time::sleep(beat * 2).await;
    assert_eq!(world.checkpoints().await.last().unwrap().body.batch_end_seq, 2);
    assert_eq!(late.await.unwrap().unwrap().seq, 1);
    assert_proved(&world).await;
}

// The late answer must not put a leaf back that a checkpoint covers already: every later checkpoint
// would stumble over it.
#[tokio::test(start_paused = true)]
async fn checkpoints_go_on_after_an_answer_that_was_late() {
    let beat = Duration::from_secs(1);
    let world = Setup::default().config(|it| it.checkpoint_interval = beat).start().await;
    let call = world.call(&token("cap-1", &[grant("*")]), "echo", json!(1));
    let caller = std::sync::Arc::new(world.caller());
    world.ledger.appending.answer_late_once();
    let late = world.spawn(call, &caller);
    world.until("append").await;
    world.run_tool("echo", json!(2)).await;
    tokio::time::sleep(DELAY * 2).await;
    late.await.unwrap().unwrap();
    echo(&world, 3).await;
    tokio::time::sleep(beat * 3).await;
    assert_eq!(world.checkpoints().await.last().unwrap().body.batch_end_seq, 5);
    assert_proved(&world).await;
}

#[tokio::test]
async fn there_is_no_proof_of_what_is_not_there() {
    let world = batches_of(2).await;
    echo(&world, 3).await;
    checkpoints(&world, 1).await;
    let log = world.log_id();
    assert_eq!(inclusion(&*world.store, &log, 3).await.unwrap(), None);
    assert_eq!(inclusion(&*world.store, &log, 99).await.unwrap(), None);
    assert_eq!(inclusion(&*world.store, "no such log", 1).await.unwrap(), None);
    for (from, to) in [(2, 1), (2, 2), (1, 0)] {
        assert!(consistency(&*world.store, &log, from, to).await.is_err(), "{from} to {to}");
    }
    assert!(world.store.covering(&log, 3).await.unwrap().is_none());
}

#[tokio::test]
async fn a_log_of_many_pages_is_read_to_its_end() {
    let world = Setup::default().start().await;
    world.ledger.checkpointing.fail(true);
    let token = token("cap-1", &[grant("echo")]);
    for n in 0..2100 {
        let call = world.call(&token, "echo", json!(n));
        world.kernel.evaluate(call, std::sync::Arc::new(world.caller())).await.unwrap();
    }
    assert!(world.kernel.drain(Duration::ZERO).await.is_err());
    let mut next = world.let_go().await;
    next.config.checkpoint_size = 7;
    let world = next.start().await;
    assert_eq!(world.checkpoints().await.len(), 300);
    let report = world.audit().await;
    assert!(report.is_clean(), "{:?}", report.logs[0].problems);
    let found = &report.logs[0];
    assert_eq!((found.entries, found.checkpoints, found.pending), (2100, 300, 0));
    let log = world.log_id();
    let last = world.checkpoints().await.pop().unwrap();
    for seq in [1, 1000, 1001, 2000, 2001, 2100] {
        let (checkpoint, _) = inclusion(&*world.store, &log, seq).await.unwrap().unwrap();
        let (from, to) = (checkpoint.body.checkpoint_seq, last.body.checkpoint_seq);
        let proof = consistency(&*world.store, &log, from, to).await.unwrap();
        assert!(last.extends(&checkpoint, &proof), "{seq}");
    }
}
