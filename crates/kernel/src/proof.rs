//! Proofs from a log: that a receipt is in it, that one checkpoint extends another, and bundles of
//! receipts that carry both.

mod export;

use chio_core::checkpoint::{KernelCheckpoint, ReceiptInclusion};
use chio_core::hash::Hash;
use chio_core::merkle::{ConsistencyProof, Tree, leaf_hash};

use crate::store::{LogEntry, LogStore, StoreError, StoreResult};

pub use export::{Part, Place, bundle, export};

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
    let batch = Batch::read(store, log_id, checkpoint).await?;
    let proof = batch.prove(log_id, seq)?;
    Ok(Some((batch.checkpoint, proof)))
}

/// The entries under one checkpoint.
struct Batch {
    checkpoint: KernelCheckpoint,
    tree: Tree,
    /// The entries, as far as they are kept.
    entries: Vec<LogEntry>,
}

impl Batch {
    /// The most bytes of entries that are kept.
    const KEPT: usize = 16 << 20;

    async fn read(
        store: &(impl LogStore + ?Sized),
        log_id: &str,
        checkpoint: KernelCheckpoint,
    ) -> StoreResult<Self> {
        let body = &checkpoint.body;
        let size = usize::try_from(body.tree_size).unwrap_or(usize::MAX);
        let mut leaves: Vec<Hash> = Vec::with_capacity(size.min(PAGE));
        let (mut entries, mut kept) = (Vec::new(), 0);
        while leaves.len() < size {
            let next = body.batch_start_seq + u64::try_from(leaves.len()).unwrap_or(u64::MAX);
            // Large entries come in several answers.
            let page = store.entries(log_id, next, size - leaves.len()).await?;
            let gapless = page.iter().zip(next..).all(|(entry, seq)| entry.seq == seq);
            if page.is_empty() || !gapless {
                return Err(not_whole(log_id, &checkpoint));
            }
            for entry in page {
                leaves.push(leaf_hash(&entry.body));
                kept += entry.body.len();
                if kept <= Self::KEPT {
                    entries.push(entry);
                }
            }
        }
        Ok(Self { checkpoint, tree: Tree::new(leaves), entries })
    }

    fn prove(&self, log_id: &str, seq: u64) -> StoreResult<ReceiptInclusion> {
        let proof = ReceiptInclusion::of(&self.checkpoint, &self.tree, seq);
        proof.ok_or_else(|| not_whole(log_id, &self.checkpoint))
    }

    /// Whether this entry is one of these.
    fn has(&self, seq: u64) -> bool {
        let body = &self.checkpoint.body;
        (body.batch_start_seq..=body.batch_end_seq).contains(&seq)
    }
}

fn not_whole(log_id: &str, checkpoint: &KernelCheckpoint) -> StoreError {
    let number = checkpoint.body.checkpoint_seq;
    StoreError::Damaged(format!("{log_id} does not hold what its checkpoint {number} covers"))
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
    let mut leaves = Vec::new();
    each_checkpoint(store, log_id, to, |checkpoint| {
        leaves.push(chain_leaf(&checkpoint)?);
        Ok(())
    })
    .await?;
    let found = leaves.len();
    let size = usize::try_from(from).unwrap_or(usize::MAX);
    Tree::new(leaves).consistency(size).ok_or_else(|| {
        let expected = format!("expected checkpoints 1 to {from} in {log_id}");
        StoreError::Refused(format!("{expected}, found {found}"))
    })
}

/// Reads all checkpoints of a log up to this one, in order.
async fn each_checkpoint<E: From<StoreError>>(
    store: &(impl LogStore + ?Sized),
    log_id: &str,
    to: u64,
    mut take: impl FnMut(KernelCheckpoint) -> Result<(), E>,
) -> Result<(), E> {
    let mut from = 1;
    while from <= to {
        let left = usize::try_from(to - from + 1).unwrap_or(PAGE).min(PAGE);
        let page = store.checkpoints(log_id, from, left).await?;
        if page.is_empty() {
            break;
        }
        for checkpoint in page {
            from += 1;
            take(checkpoint)?;
        }
    }
    Ok(())
}

/// A checkpoint's leaf in the tree over all checkpoints.
fn chain_leaf(checkpoint: &KernelCheckpoint) -> StoreResult<Hash> {
    checkpoint.body.chain_leaf().map_err(|error| StoreError::Damaged(error.to_string()))
}
