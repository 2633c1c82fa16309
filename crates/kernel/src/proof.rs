//! Proofs from a log: that a receipt is in it, that one checkpoint extends another, and bundles of
//! receipts that carry both.

use std::collections::{BTreeMap, BTreeSet};

use chio_core::bundle::{BUNDLE_SCHEMA, BundleEntry, ConsistencyEvidence, ReceiptBundle};
use chio_core::checkpoint::{KernelCheckpoint, ReceiptInclusion};
use chio_core::hash::Hash;
use chio_core::merkle::{ConsistencyProof, leaf_hash};
use chio_core::receipt::LoggedReceipt;

use crate::store::{LogStore, ReceiptRow, StoreError, StoreResult};

/// How many checkpoints are read at once.
const PAGE: usize = 1000;

/// The proof that an entry is in its log, and the checkpoint that it is under; none while no
/// checkpoint covers it.
///
/// # Errors
/// When the store does not answer, or does not hold what its checkpoint covers.
pub async fn inclusion(
    store: &(impl LogStore + ?Sized),
    log_id: &str,
    seq: u64,
) -> StoreResult<Option<(KernelCheckpoint, ReceiptInclusion)>> {
    let Some(checkpoint) = store.covering(log_id, seq).await? else { return Ok(None) };
    let body = &checkpoint.body;
    let size = usize::try_from(body.tree_size).unwrap_or(usize::MAX);
    let leaves = leaves(store, log_id, body.batch_start_seq, size).await?;
    let whole = leaves.len() == size;
    match ReceiptInclusion::build(&checkpoint, &leaves, seq).filter(|_| whole) {
        Some(proof) => Ok(Some((checkpoint, proof))),
        None => {
            let number = checkpoint.body.checkpoint_seq;
            let problem = format!("{log_id} does not hold what its checkpoint {number} covers");
            Err(StoreError::Damaged(problem))
        }
    }
}

/// The leaves of this many entries from this place on, as far as there are no gaps.
async fn leaves(
    store: &(impl LogStore + ?Sized),
    log_id: &str,
    from: u64,
    count: usize,
) -> StoreResult<Vec<Hash>> {
    let mut leaves = Vec::with_capacity(count.min(PAGE));
    while leaves.len() < count {
        let next = from + u64::try_from(leaves.len()).unwrap_or(u64::MAX);
        // Large entries come in several answers.
        let page = store.entries(log_id, next, count - leaves.len()).await?;
        let gapless = page.iter().zip(next..).all(|(entry, seq)| entry.seq == seq);
        if page.is_empty() || !gapless {
            break;
        }
        leaves.extend(page.iter().map(|entry| leaf_hash(&entry.body)));
    }
    Ok(leaves)
}

/// The proof that checkpoint `to` of a log extends checkpoint `from`.
///
/// # Errors
/// When the store does not answer or there are no such checkpoints.
pub async fn consistency(
    store: &(impl LogStore + ?Sized),
    log_id: &str,
    from: u64,
    to: u64,
) -> StoreResult<ConsistencyProof> {
    let leaves = chain_leaves(store, log_id, to).await?;
    proof_between(&leaves, from, log_id)
}

fn proof_between(leaves: &[Hash], from: u64, log_id: &str) -> StoreResult<ConsistencyProof> {
    let size = usize::try_from(from).unwrap_or(usize::MAX);
    ConsistencyProof::build(leaves, size).ok_or_else(|| {
        let found = leaves.len();
        let expected = format!("expected checkpoints 1 to {from} in {log_id}");
        StoreError::Refused(format!("{expected}, found {found}"))
    })
}

/// The leaves of all checkpoints of a log up to this one.
async fn chain_leaves(
    store: &(impl LogStore + ?Sized),
    log_id: &str,
    to: u64,
) -> StoreResult<Vec<Hash>> {
    let mut leaves = Vec::new();
    loop {
        let from = u64::try_from(leaves.len()).unwrap_or(u64::MAX) + 1;
        let left = usize::try_from(to.saturating_sub(from) + 1).unwrap_or(PAGE).min(PAGE);
        let page =
            if from > to { Vec::new() } else { store.checkpoints(log_id, from, left).await? };
        if page.is_empty() {
            return Ok(leaves);
        }
        for checkpoint in page {
            let leaf = checkpoint.body.chain_leaf();
            leaves.push(leaf.map_err(|error| StoreError::Damaged(error.to_string()))?);
        }
    }
}

/// A bundle of these receipts: everything that a reader without the store needs to verify them.
///
/// # Errors
/// When the store does not answer, or does not hold what it should.
pub async fn bundle(
    store: &(impl LogStore + ?Sized),
    rows: &[ReceiptRow],
) -> StoreResult<ReceiptBundle> {
    let mut checkpoints: BTreeMap<(String, u64), KernelCheckpoint> = BTreeMap::new();
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        let receipt = LoggedReceipt::from_slice(&row.body).map_err(|error| {
            StoreError::Damaged(format!("{} of {}: {error}", row.seq, row.log_id))
        })?;
        let proved = inclusion(store, &row.log_id, row.seq).await?;
        let inclusion = proved.map(|(checkpoint, proof)| {
            let key = (row.log_id.clone(), checkpoint.body.checkpoint_seq);
            checkpoints.insert(key, checkpoint);
            proof
        });
        entries.push(BundleEntry { inclusion, log_id: row.log_id.clone(), receipt, seq: row.seq });
    }
    let logs: BTreeSet<String> = rows.iter().map(|row| row.log_id.clone()).collect();
    let mut certificates = Vec::new();
    let mut evidence = Vec::new();
    for summary in store.logs().await?.into_iter().filter(|log| logs.contains(&log.log_id)) {
        certificates.extend(summary.certificates);
        let log_id = summary.log_id;
        let last = store.checkpoints(&log_id, summary.checkpoints, 1).await?.pop();
        let Some(last) = last else { continue };
        let to = last.body.checkpoint_seq;
        checkpoints.insert((log_id.clone(), to), last);
        let leaves = chain_leaves(store, &log_id, to).await?;
        let earlier = checkpoints.keys().filter(|(log, seq)| *log == log_id && *seq != to);
        for (_, from) in earlier {
            let proof = proof_between(&leaves, *from, &log_id)?;
            evidence.push(ConsistencyEvidence { log_id: log_id.clone(), proof });
        }
    }
    Ok(ReceiptBundle {
        certificates,
        checkpoints: checkpoints.into_values().collect(),
        consistency: evidence,
        entries,
        schema: BUNDLE_SCHEMA.to_owned(),
        store_id: store.store_id().await?,
    })
}
