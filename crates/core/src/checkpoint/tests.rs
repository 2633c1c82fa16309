//! Checkpoints: what one states, what follows one, and what is in one.

use serde_json::Value;

use super::*;
use crate::crypto::SignatureError;
use crate::merkle::root;
use crate::strict;

const KERNEL: u8 = 7;
const NOW: u64 = 1_700_000_300;

fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}

fn contents(range: std::ops::RangeInclusive<u64>) -> Vec<Vec<u8>> {
    range.map(|n| format!("entry {n}").into_bytes()).collect()
}

fn leaves(range: std::ops::RangeInclusive<u64>) -> Vec<Hash> {
    contents(range).iter().map(|content| leaf_hash(content)).collect()
}

fn batch(start_seq: u64, end_seq: u64) -> Batch {
    Batch { start_seq, end_seq, merkle_root: root(&leaves(start_seq..=end_seq)).unwrap() }
}

/// Checkpoints over batches of these sizes.
fn issue(sizes: &[u64]) -> Vec<KernelCheckpoint> {
    let mut chain = Frontier::default();
    let mut issued: Vec<KernelCheckpoint> = Vec::new();
    let mut start = 1;
    for size in sizes {
        let batch = batch(start, start + size - 1);
        let next =
            KernelCheckpoint::issue(issued.last(), &mut chain, batch, NOW, &key(KERNEL)).unwrap();
        issued.push(next);
        start += size;
    }
    issued
}

/// Signs whatever the body says.
fn force(body: CheckpointBody) -> KernelCheckpoint {
    let signature = key(KERNEL).sign(&canonical::to_vec(&body).unwrap());
    KernelCheckpoint { body, signature }
}

/// The first, second and third checkpoint with a change, signed again.
fn changed(index: usize, change: impl FnOnce(&mut CheckpointBody)) -> KernelCheckpoint {
    let mut body = issue(&[4, 3, 1]).swap_remove(index).body;
    change(&mut body);
    force(body)
}

#[track_caller]
fn refuse(checkpoint: &KernelCheckpoint, expected: &str) {
    let refused = Err(ArtifactError::Malformed(expected.to_owned()));
    assert_eq!(checkpoint.check_signature(), refused);
    assert_eq!(checkpoint.clone().signed(&key(KERNEL)).map(drop), refused);
}

#[track_caller]
fn accept(checkpoint: &KernelCheckpoint) {
    assert_eq!(checkpoint.check_signature(), Ok(()));
    assert_eq!(checkpoint.clone().signed(&key(KERNEL)).as_ref(), Ok(checkpoint));
}

#[test]
fn issued_checkpoints_follow_each_other() {
    let issued = issue(&[4, 3, 1, 100, 1]);
    let mut chain = Frontier::default();
    let mut start = 1;
    for (index, checkpoint) in issued.iter().enumerate() {
        accept(checkpoint);
        let body = &checkpoint.body;
        assert_eq!(body.schema, CHECKPOINT_SCHEMA);
        assert_eq!(body.checkpoint_seq, u64::try_from(index).unwrap() + 1);
        assert_eq!(body.batch_start_seq, start);
        assert_eq!(body.tree_size, body.batch_end_seq - start + 1);
        assert_eq!(checkpoint.check_chain_root(&mut chain), Ok(()));
        match index.checked_sub(1).map(|before| &issued[before]) {
            None => assert_eq!(body.previous_checkpoint_sha256, None),
            Some(before) => assert_eq!(checkpoint.check_follows(before), Ok(())),
        }
        start = body.batch_end_seq + 1;
    }
    assert_eq!(issued[0].body.chain_root, Some(issued[0].body.chain_leaf().unwrap()));
}

#[test]
fn the_schema_is_one_of_two() {
    for schema in ["", "chio.checkpoint_statement.v3", "chio.checkpoint_statement"] {
        let expected = format!("expected schema `chio.checkpoint_statement.v2`, found `{schema}`");
        refuse(&changed(0, |body| schema.clone_into(&mut body.schema)), &expected);
    }
    assert_eq!(CHECKPOINT_SCHEMA, "chio.checkpoint_statement.v2");
    assert_eq!(CHECKPOINT_SCHEMA_V1, "chio.checkpoint_statement.v1");
}

#[test]
fn numbers_and_times_are_above_zero() {
    let zeros: [fn(&mut CheckpointBody); 5] = [
        |body| body.checkpoint_seq = 0,
        |body| body.batch_start_seq = 0,
        |body| body.issued_at = 0,
        |body| {
            body.batch_start_seq = 0;
            body.tree_size += 1;
        },
        |body| {
            body.batch_start_seq = 0;
            body.batch_end_seq = 0;
            body.tree_size = 1;
        },
    ];
    for zero in zeros {
        let expected = "expected sequence numbers and time above zero, found a zero";
        refuse(&changed(1, zero), expected);
    }
}

#[test]
fn the_tree_has_as_many_leaves_as_the_batch_has_entries() {
    for (start, end, size, fits) in [
        (5, 7, 3, true),
        (5, 5, 1, true),
        (1, u64::MAX, u64::MAX, true),
        (5, 7, 2, false),
        (5, 7, 4, false),
        (5, 7, 0, false),
        (5, 5, 0, false),
        (5, 4, 0, false),
        (5, 4, 1, false),
        (7, 5, 3, false),
        (u64::MAX, 1, 3, false),
    ] {
        let checkpoint = changed(1, |body| {
            (body.batch_start_seq, body.batch_end_seq, body.tree_size) = (start, end, size);
        });
        match fits {
            true => accept(&checkpoint),
            false => {
                refuse(&checkpoint, "expected a tree of as many leaves as the batch has entries")
            }
        }
    }
}

#[test]
fn the_first_checkpoint_has_no_predecessor_and_its_own_chain_root() {
    let digest = Some("0".repeat(64));
    for schema in [CHECKPOINT_SCHEMA, CHECKPOINT_SCHEMA_V1] {
        let with_predecessor = changed(0, |body| {
            schema.clone_into(&mut body.schema);
            body.previous_checkpoint_sha256.clone_from(&digest);
            body.chain_root = body.chain_root.filter(|_| schema == CHECKPOINT_SCHEMA);
        });
        let expected = "expected no predecessor of the first checkpoint, found one";
        refuse(&with_predecessor, expected);
    }
    let expected = "expected the first checkpoint's own leaf as chain root";
    refuse(&changed(0, |body| body.chain_root = None), expected);
    refuse(&changed(0, |body| body.chain_root = Some(body.merkle_root)), expected);
    refuse(&changed(0, |body| body.merkle_root = leaf_hash(b"other")), expected);
    refuse(&changed(0, |body| (body.batch_end_seq, body.tree_size) = (5, 5)), expected);
}

#[test]
fn the_older_form_is_accepted_without_a_chain_root_and_refused_with_one() {
    for index in [0, 1] {
        let without = changed(index, |body| {
            CHECKPOINT_SCHEMA_V1.clone_into(&mut body.schema);
            body.chain_root = None;
        });
        accept(&without);
        let with = changed(index, |body| CHECKPOINT_SCHEMA_V1.clone_into(&mut body.schema));
        refuse(&with, "expected no chain root in a v1 checkpoint, found one");
    }
}

#[test]
fn members_may_be_missing_but_never_null() {
    let later = serde_json::to_value(&issue(&[4, 3])[1]).unwrap();
    let read = |value: &Value| strict::from_slice::<KernelCheckpoint>(value.to_string().as_bytes());
    assert_eq!(read(&later).unwrap(), issue(&[4, 3])[1]);
    for name in ["previous_checkpoint_sha256", "chain_root"] {
        let mut value = later.clone();
        value["body"][name] = Value::Null;
        assert!(read(&value).is_err(), "null as {name}");
        value["body"].as_object_mut().unwrap().remove(name);
        let missing = read(&value).unwrap();
        assert_eq!(serde_json::to_value(&missing).unwrap(), value, "{name} stays away");
    }
    let names: Vec<String> = later["body"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names.len(), 10);
    for name in names
        .iter()
        .filter(|name| !["previous_checkpoint_sha256", "chain_root"].contains(&name.as_str()))
    {
        let mut value = later.clone();
        value["body"].as_object_mut().unwrap().remove(name);
        assert!(read(&value).is_err(), "without {name}");
    }
    for pointer in ["", "/body"] {
        let mut value = later.clone();
        value.pointer_mut(pointer).unwrap()["never_heard_of"] = json!(1);
        assert!(read(&value).is_err(), "an unknown member at `{pointer}`");
    }
}

#[test]
fn a_checkpoint_is_signed_by_the_kernel_it_names() {
    let checkpoint = issue(&[4]).remove(0);
    let wrong = checkpoint.clone().signed(&key(1));
    assert!(matches!(wrong, Err(ArtifactError::WrongKey { .. })));
    let changes: [fn(&mut KernelCheckpoint); 4] = [
        |checkpoint| checkpoint.body.issued_at += 1,
        |checkpoint| checkpoint.body.kernel_key = key(1).public_key().clone(),
        |checkpoint| checkpoint.signature = Signature::blank(),
        |checkpoint| {
            checkpoint.signature = key(1).sign(&canonical::to_vec(&checkpoint.body).unwrap());
        },
    ];
    for change in changes {
        let mut changed = checkpoint.clone();
        change(&mut changed);
        assert_eq!(changed.check_signature(), Err(SignatureError::Invalid.into()));
    }
}

/// A change of what is stated.
type Edit = fn(&mut CheckpointBody);

#[test]
fn a_successor_keeps_every_rule() {
    let [first, second, third] = issue(&[4, 3, 1]).try_into().unwrap();
    assert_eq!(second.check_follows(&first), Ok(()));
    assert_eq!(third.check_follows(&second), Ok(()));
    let relinked = |change: Edit| {
        changed(1, |body| {
            change(body);
            body.previous_checkpoint_sha256 = Some(first.body.digest().unwrap());
        })
    };
    let broken: [(Edit, &str); 7] = [
        (|body| body.checkpoint_seq = 3, "the next number in checkpoint 3"),
        (|body| body.checkpoint_seq = 1, "the next number in checkpoint 1"),
        (|body| body.batch_start_seq = 6, "the next entry in checkpoint 2"),
        (|body| body.batch_start_seq = 4, "the next entry in checkpoint 2"),
        (
            |body| body.kernel_key = key(1).public_key().clone(),
            "the same kernel key in checkpoint 2",
        ),
        (|body| body.chain_root = None, "a chain root, as before in checkpoint 2"),
        (
            |body| {
                CHECKPOINT_SCHEMA_V1.clone_into(&mut body.schema);
                body.chain_root = None;
            },
            "a chain root, as before in checkpoint 2",
        ),
    ];
    for (change, expected) in broken {
        let error = relinked(change).check_follows(&first).unwrap_err();
        assert_eq!(error.to_string(), format!("expected {expected}, found another"));
    }
    let digest = "expected the digest of the checkpoint before in checkpoint 2, found another";
    for other in [None, Some("0".repeat(64)), Some(second.body.digest().unwrap())] {
        let changed = changed(1, |body| body.previous_checkpoint_sha256 = other);
        assert_eq!(changed.check_follows(&first).unwrap_err().to_string(), digest);
    }
    // A predecessor that was changed is another one, even if only its time was.
    let rewritten = changed(0, |body| body.issued_at += 1);
    assert_eq!(second.check_follows(&rewritten).unwrap_err().to_string(), digest);
    assert!(third.check_follows(&first).is_err());
    assert!(first.check_follows(&first).is_err());
    assert!(first.check_follows(&second).is_err());
}

#[test]
fn the_older_form_may_be_followed_by_either() {
    let old = changed(0, |body| {
        CHECKPOINT_SCHEMA_V1.clone_into(&mut body.schema);
        body.chain_root = None;
    });
    for (schema, chained) in
        [(CHECKPOINT_SCHEMA_V1, false), (CHECKPOINT_SCHEMA, true), (CHECKPOINT_SCHEMA, false)]
    {
        let next = changed(1, |body| {
            schema.clone_into(&mut body.schema);
            body.chain_root = body.chain_root.filter(|_| chained);
            body.previous_checkpoint_sha256 = Some(old.body.digest().unwrap());
        });
        accept(&next);
        assert_eq!(next.check_follows(&old), Ok(()), "{schema} {chained}");
    }
}

#[test]
fn a_wrong_chain_root_is_noticed() {
    let issued = issue(&[4, 3, 1]);
    let chain_root = "expected the root over all checkpoints as chain root, found another";
    let wrong = Err(ArtifactError::Malformed(chain_root.to_owned()));
    for root in [leaf_hash(b"other"), issued[0].body.chain_root.unwrap()] {
        let mut chain = Frontier::default();
        assert_eq!(issued[0].check_chain_root(&mut chain), Ok(()));
        let changed = changed(1, |body| body.chain_root = Some(root));
        accept(&changed);
        assert_eq!(changed.check_chain_root(&mut chain), wrong);
    }
    // One left out, one out of order.
    let mut chain = Frontier::default();
    assert_eq!(issued[1].check_chain_root(&mut chain), wrong);
    let mut chain = Frontier::default();
    assert_eq!(issued[0].check_chain_root(&mut chain), Ok(()));
    assert_eq!(issued[2].check_chain_root(&mut chain), wrong);
    // Each of the four members of a leaf counts.
    let changes: [fn(&mut CheckpointBody); 4] = [
        |body| body.checkpoint_seq += 1,
        |body| body.batch_start_seq -= 1,
        |body| body.batch_end_seq += 1,
        |body| body.merkle_root = leaf_hash(b"other"),
    ];
    for change in changes {
        let mut chain = Frontier::default();
        assert_eq!(issued[0].check_chain_root(&mut chain), Ok(()));
        assert_eq!(changed(1, change).check_chain_root(&mut chain), wrong);
    }
    let unchained = changed(1, |body| body.chain_root = None);
    let mut chain = Frontier::default();
    assert_eq!(unchained.check_chain_root(&mut chain), Ok(()), "there is nothing to compare");
    assert_eq!(chain.size(), 1);
}

#[test]
fn a_chain_leaf_is_over_four_members() {
    let body = issue(&[4, 3]).remove(1).body;
    let expected = format!(
        r#"{{"batch_end_seq":7,"batch_start_seq":5,"checkpoint_seq":2,"merkle_root":"{}"}}"#,
        body.merkle_root
    );
    assert_eq!(body.chain_leaf().unwrap(), leaf_hash(expected.as_bytes()));
    let other = CheckpointBody { issued_at: 1, ..body.clone() };
    assert_eq!(other.chain_leaf(), body.chain_leaf());
    assert_eq!(body.digest().unwrap(), canonical::hash(&body).unwrap());
    assert_eq!(body.digest().unwrap().len(), 64);
}

#[test]
fn a_checkpoint_that_cannot_be_issued_leaves_the_chain_as_it_was() {
    let issued = issue(&[4]);
    let mut chain = Frontier::default();
    issued[0].check_chain_root(&mut chain).unwrap();
    let before = chain.clone();
    let mut attempt = |previous: Option<&KernelCheckpoint>, batch: Batch, now: u64, seed: u8| {
        let outcome = KernelCheckpoint::issue(previous, &mut chain, batch, now, &key(seed));
        assert_eq!(chain, before);
        outcome.unwrap_err()
    };
    let next = batch(5, 7);
    attempt(Some(&issued[0]), batch(6, 7), NOW, KERNEL);
    attempt(Some(&issued[0]), Batch { end_seq: 3, ..next }, NOW, KERNEL);
    attempt(Some(&issued[0]), next, 0, KERNEL);
    attempt(Some(&issued[0]), next, NOW, 1);
    attempt(None, next, NOW, KERNEL);
    let mut short = Frontier::default();
    let outcome = KernelCheckpoint::issue(Some(&issued[0]), &mut short, next, NOW, &key(KERNEL));
    let expected = "expected the chain to hold every checkpoint before this one";
    assert_eq!(outcome.unwrap_err().to_string(), expected);
    assert_eq!(short, Frontier::default());
    assert!(KernelCheckpoint::issue(Some(&issued[0]), &mut chain, next, NOW, &key(KERNEL)).is_ok());
    assert_eq!(chain.size(), 2);
}

#[test]
fn an_entry_is_in_the_checkpoint_of_its_batch_and_at_its_place() {
    let [first, second] = issue(&[4, 3]).try_into().unwrap();
    let (contents, leaves) = (contents(5..=7), leaves(5..=7));
    for (index, content) in contents.iter().enumerate() {
        let proof = InclusionProof::build(&leaves, index).unwrap();
        let seq = 5 + u64::try_from(index).unwrap();
        for other in 0..12 {
            assert_eq!(second.includes(other, content, &proof), other == seq, "{other}");
            assert!(!first.includes(other, content, &proof), "another checkpoint");
        }
        assert!(!second.includes(u64::MAX, content, &proof));
        assert!(!second.includes(seq, b"other", &proof), "another content");
        for tree_size in [0, 1, 2, 4, 7, u64::MAX] {
            let resized = InclusionProof { tree_size, ..proof.clone() };
            assert!(!second.includes(seq, content, &resized), "a tree of {tree_size}");
        }
        for leaf_index in (0..4).filter(|other| *other != proof.leaf_index) {
            let moved = InclusionProof { leaf_index, ..proof.clone() };
            assert!(!second.includes(seq, content, &moved), "at {leaf_index}");
            assert!(!second.includes(5 + leaf_index, content, &moved), "at {leaf_index}");
        }
        let mut broken = proof.clone();
        broken.audit_path.pop();
        assert!(!second.includes(seq, content, &broken), "a hash is missing");
    }
}

#[test]
fn a_log_is_named_after_its_key() {
    let kernel = key(KERNEL);
    let raw = kernel.public_key().as_ed25519().unwrap();
    assert_eq!(log_id(kernel.public_key()), format!("local-log-{}", sha256_hex(raw)));
    assert_ne!(log_id(kernel.public_key()), log_id(key(1).public_key()));
    let other = PublicKey::from_hex(&format!("p256:04{}", "5a".repeat(64))).unwrap();
    assert!(log_id(&other).starts_with("local-log-"));
}
