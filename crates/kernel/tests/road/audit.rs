//! Audits: a clean store is clean, and whatever is changed is found.

use std::time::Duration;

use chio_core::canonical;
use chio_core::certificate::KernelCertificate;
use chio_core::checkpoint::KernelCheckpoint;
use chio_core::receipt::LoggedReceipt;
use chio_core::signed::Signed;
use chio_kernel::audit::{AuditReport, AuditTrust, audit};
use chio_kernel::store::LogEntry;
use chio_testkit::key;
use serde_json::json;

use crate::support::store::LyingStore;
use crate::support::{Setup, World};

/// A log of seven receipts: two full batches of three, and one more.
async fn world() -> World {
    let world = Setup::default().config(|it| it.checkpoint_size = 3).start().await;
    for n in 0..7 {
        world.run_tool(["echo", "effect", "fail"][n % 3], json!({"n": n})).await;
    }
    for _ in 0..1000 {
        if world.checkpoints().await.len() == 2 {
            return world;
        }
        tokio::task::yield_now().await;
    }
    panic!("expected two checkpoints");
}

fn trust(world: &World) -> AuditTrust {
    AuditTrust { authorities: vec![world.authority()], kernels: Vec::new() }
}

async fn examine(world: &World, lie: impl FnOnce(&mut LyingStore)) -> AuditReport {
    let mut store = LyingStore::new(&world.shared());
    lie(&mut store);
    audit(&store, &trust(world), |_| {}).await.unwrap()
}

/// Checks that an audit says this, once the store lies like that.
async fn finds(world: &World, words: &str, lie: impl FnOnce(&mut LyingStore)) {
    let report = examine(world, lie).await;
    let problems = &report.logs[0].problems;
    assert!(!report.is_clean(), "expected `{words}`, found nothing");
    assert!(problems.iter().any(|it| it.contains(words)), "expected `{words}`, found {problems:?}");
}

fn entries(lie: &mut LyingStore, change: impl Fn(&mut Vec<LogEntry>) + Send + Sync + 'static) {
    lie.entries = Box::new(move |mut all| {
        change(&mut all);
        all
    });
}

fn checkpoints(
    lie: &mut LyingStore,
    change: impl Fn(&mut Vec<KernelCheckpoint>) + Send + Sync + 'static,
) {
    lie.checkpoints = Box::new(move |mut all| {
        change(&mut all);
        all
    });
}

/// The entry as the holder of another key would write it.
fn resigned(entry: &LogEntry) -> Vec<u8> {
    let LoggedReceipt::Call(mut receipt) = LoggedReceipt::from_slice(&entry.body).unwrap() else {
        panic!("expected a call")
    };
    receipt.kernel_key = key(9).public_key().clone();
    canonical::to_vec(&receipt.signed(&key(9)).unwrap()).unwrap()
}

#[tokio::test]
async fn a_store_that_nobody_changed_is_clean() {
    let world = world().await;
    let mut progress = Vec::new();
    let report = audit(&*world.store, &trust(&world), |at| progress.push(at)).await.unwrap();
    assert!(report.is_clean(), "{report:?}");
    let log = &report.logs[0];
    assert_eq!((log.entries, log.checkpoints, log.pending), (7, 2, 1));
    assert_eq!((log.certified, log.open_intents), (true, 0));
    let last = progress.last().unwrap();
    assert_eq!((last.done, last.total), (7, 7));
    assert!(examine(&world, |_| {}).await.is_clean(), "a liar that does not lie");
}

#[tokio::test]
async fn several_logs_of_one_store_are_audited_together() {
    let one = world().await;
    let two = Setup::beside(&one).start().await;
    two.run_tool("echo", json!(1)).await;
    two.kernel.drain(Duration::ZERO).await.unwrap();
    let report = one.audit().await;
    assert!(report.is_clean() && report.logs.len() == 2, "{report:?}");
    assert_ne!(report.logs[0].log_id, report.logs[1].log_id);
}

#[tokio::test]
async fn a_changed_body_is_found() {
    let world = world().await;
    // In a batch that a checkpoint covers, and in the rest that none does yet.
    for place in [1, 6] {
        finds(&world, &format!("entry {}: receipt", place + 1), |lie| {
            entries(lie, move |all| {
                let text = String::from_utf8(all[place].body.clone()).unwrap();
                let changed = text.replace(&format!("\"n\":{place}"), "\"n\":99");
                assert_ne!(text, changed);
                all[place].body = changed.into_bytes();
            });
        })
        .await;
    }
    finds(&world, "this is not a receipt", |lie| {
        entries(lie, |all| all[2].body = b"{}".to_vec());
    })
    .await;
    // The same receipt in another form.
    finds(&world, "expected the canonical form", |lie| {
        entries(lie, |all| all[2].body.push(b' '));
    })
    .await;
}

#[tokio::test]
async fn a_receipt_of_another_kernel_is_found() {
    let world = world().await;
    finds(&world, "entry 4: it is signed by another kernel", |lie| {
        entries(lie, |all| all[3].body = resigned(&all[3]));
    })
    .await;
    finds(&world, "checkpoint 2: its root is not that of the entries it covers", |lie| {
        entries(lie, |all| all[3].body = resigned(&all[3]));
    })
    .await;
}

#[tokio::test]
async fn a_missing_entry_is_found() {
    let world = world().await;
    finds(&world, "entries 3 to 3 are missing", |lie| {
        entries(lie, |all| drop(all.remove(2)));
    })
    .await;
    // Renumbered, so that no number is missing.
    finds(&world, "root is not that of the entries", |lie| {
        entries(lie, |all| {
            all.remove(2);
            (1..).zip(all).for_each(|(seq, entry)| entry.seq = seq);
        });
    })
    .await;
    // The end of the log, of which the last entry has no checkpoint yet.
    finds(&world, "expected 7 entries, found 6", |lie| {
        entries(lie, |all| all.truncate(6));
    })
    .await;
    finds(&world, "1 checkpoints cover entries that are not there", |lie| {
        entries(lie, |all| all.truncate(4));
    })
    .await;
    finds(&world, "expected 7 entries, found 0", |lie| entries(lie, Vec::clear)).await;
}

#[tokio::test]
async fn swapped_entries_are_found() {
    let world = world().await;
    for (one, other) in [(0, 1), (1, 4)] {
        finds(&world, "root is not that of the entries", |lie| {
            entries(lie, move |all| {
                let body = std::mem::take(&mut all[one].body);
                all[one].body = std::mem::replace(&mut all[other].body, body);
            });
        })
        .await;
    }
}

#[tokio::test]
async fn a_doubled_receipt_is_found() {
    let world = world().await;
    finds(&world, "entry 8: its id or its call occurs a second time", |lie| {
        entries(lie, |all| {
            let (seq, body) = (8, all[1].body.clone());
            all.push(LogEntry { seq, body });
        });
    })
    .await;
    finds(&world, "entry 2: its id or its call occurs a second time", |lie| {
        entries(lie, |all| all[1].body = all[0].body.clone());
    })
    .await;
}

#[tokio::test]
async fn a_receipt_that_is_in_two_logs_is_found() {
    let one = world().await;
    let two = Setup::beside(&one).start().await;
    two.run_tool("echo", json!(1)).await;
    two.kernel.drain(Duration::ZERO).await.unwrap();
    let report = examine(&one, |lie| entries(lie, |all| all[0].body = all[0].body.clone())).await;
    assert!(report.is_clean());
    // Every log now begins with the first log's first receipt.
    let first = one.logged().await.remove(0);
    let body = canonical::to_vec(&first).unwrap();
    let report =
        examine(&one, move |lie| entries(lie, move |all| all[0].body = body.clone())).await;
    let problems = &report.logs[1].problems;
    assert!(problems.iter().any(|it| it.contains("occurs a second time")), "{problems:?}");
}

#[tokio::test]
async fn a_checkpoint_that_is_not_the_kernels_is_found() {
    let world = world().await;
    finds(&world, "checkpoint 1: it is signed by another kernel", |lie| {
        checkpoints(lie, |all| {
            all[0].body.kernel_key = key(9).public_key().clone();
            all[0] = all[0].clone().signed(&key(9)).unwrap();
        });
    })
    .await;
    finds(&world, "checkpoint 2: ", |lie| {
        checkpoints(lie, |all| all[1].body.issued_at += 1);
    })
    .await;
    finds(&world, "checkpoint 2: ", |lie| {
        checkpoints(lie, |all| all[1].signature = all[0].signature.clone());
    })
    .await;
}

#[tokio::test]
async fn a_missing_or_doubled_checkpoint_is_found() {
    let world = world().await;
    finds(&world, "expected the first checkpoint", |lie| {
        checkpoints(lie, |all| drop(all.remove(0)));
    })
    .await;
    finds(&world, "1 checkpoints cover entries", |lie| {
        checkpoints(lie, |all| all.truncate(1));
    })
    .await;
    finds(&world, "checkpoint 1: ", |lie| {
        checkpoints(lie, |all| all.insert(1, all[0].clone()));
    })
    .await;
}

#[tokio::test]
async fn a_kernel_that_nobody_vouches_for_is_found() {
    let world = world().await;
    let change = |lie: &mut LyingStore, change: fn(&mut chio_kernel::store::LogSummary)| {
        lie.logs = Box::new(move |mut all| {
            all.iter_mut().for_each(change);
            all
        });
    };
    finds(&world, "no authority vouches", |lie| change(lie, |log| log.certificates.clear())).await;
    finds(&world, "an authority that is not trusted", |lie| {
        change(lie, |log| {
            let certificate = log.certificates.pop().unwrap();
            let (kernel, store) = (certificate.kernel_key, certificate.store_id);
            let issued = KernelCertificate::issue(&key(9), kernel, store, certificate.issued_at);
            log.certificates = vec![issued.unwrap()];
        });
    })
    .await;
    finds(&world, "another kernel or store", |lie| {
        change(lie, |log| {
            let kernel = log.kernel_key.clone();
            log.certificates = vec![KernelCertificate::issue(&key(9), kernel, "other", 1).unwrap()];
        });
    })
    .await;
    finds(&world, "certificate: ", |lie| {
        change(lie, |log| log.certificates[0].issued_at += 1);
    })
    .await;
    finds(&world, "not named after its kernel's key", |lie| {
        change(lie, |log| log.kernel_key = key(9).public_key().clone());
    })
    .await;
}

#[tokio::test]
async fn a_pinned_kernel_needs_no_authority() {
    let world = world().await;
    let kernel = world.kernel.public_key().clone();
    let other = key(9).public_key().clone();
    for (authorities, kernels, clean) in [
        (vec![world.authority()], vec![], true),
        (vec![other.clone()], vec![kernel.clone()], true),
        (vec![other.clone()], vec![other], false),
        // An auditor that trusts no key finds nothing clean, whatever vouches for itself.
        (vec![], vec![], false),
        (vec![], vec![key(9).public_key().clone()], false),
    ] {
        let trust = AuditTrust { authorities, kernels };
        let report = audit(&*world.store, &trust, |_| {}).await.unwrap();
        assert_eq!(report.is_clean(), clean, "{trust:?}");
    }
}
