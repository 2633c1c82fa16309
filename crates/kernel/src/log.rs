//! The receipt log of one kernel: what was appended, and the checkpoints over it.

use std::collections::BTreeMap;
use std::sync::Arc;

use chio_core::checkpoint::{Batch, KernelCheckpoint, log_id};
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::hash::Hash;
use chio_core::mark::Mark;
use chio_core::merkle::{self, Frontier, leaf_hash};
use chio_core::signed::Signed;
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};

use crate::clock::Clock;
use crate::error::KernelError;
use crate::mark::decreases;
use crate::store::{Appended, Entry, Ledger, LogStore, Store, StoreError, StoreResult};

/// How many entries or checkpoints are read at once.
const PAGE: usize = 1000;
/// How many receipts a subscriber may fall behind before it misses some.
const MAX_BEHIND: usize = 64;

/// A receipt that has become durable. The log has it: a copy for each call would cost calls more than
/// most subscribers read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurableReceipt {
    /// Its place in the kernel's log, from 1; see [`ChioKernel::logged`](crate::ChioKernel::logged).
    pub seq: u64,
    /// When it had become durable, in milliseconds since 1970.
    pub at: u64,
}

/// The log, as far as it is not behind a checkpoint yet.
pub(crate) struct ReceiptLog {
    log_id: String,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    receipts: broadcast::Sender<DurableReceipt>,
    batch: usize,
    pending: Mutex<Pending>,
    /// Woken when there is enough for a checkpoint.
    pub(crate) full: Arc<Notify>,
    /// Held while a checkpoint is made, so that each follows the one before.
    chain: tokio::sync::Mutex<Chain>,
    /// The last mark, and the epoch of revocations that it was made for. Held while one is made, so
    /// that the store is only ever ahead of the one before.
    marked: tokio::sync::Mutex<Option<(Mark, u64)>>,
}

#[derive(Debug)]
struct Pending {
    /// The first entry that no checkpoint covers.
    next: u64,
    /// Leaves of entries from there on; appends may come back out of order.
    leaves: BTreeMap<u64, Hash>,
}

#[derive(Debug, Default)]
struct Chain {
    previous: Option<KernelCheckpoint>,
    frontier: Frontier,
}

impl ReceiptLog {
    /// Picks the log up where its last checkpoint left it.
    pub(crate) async fn open(
        store: &dyn Store,
        ledger: Arc<dyn Ledger>,
        clock: Arc<dyn Clock>,
        key: &PublicKey,
        batch: usize,
    ) -> StoreResult<Self> {
        let log_id = log_id(key);
        let chain = read_chain(store, &log_id, key).await?;
        let next = chain.previous.as_ref().map_or(1, |last| last.body.batch_end_seq + 1);
        let pending = Pending { next, leaves: BTreeMap::new() };
        let (pending, full) = (Mutex::new(pending), Arc::new(Notify::new()));
        let (batch, chain) = (batch.max(1), tokio::sync::Mutex::new(chain));
        let (receipts, marked) = (broadcast::channel(MAX_BEHIND).0, tokio::sync::Mutex::default());
        let log = Self { log_id, ledger, clock, receipts, batch, pending, full, chain, marked };
        log.read_from(store, next, None).await?;
        Ok(log)
    }

    /// Receipts as they become durable from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<DurableReceipt> {
        self.receipts.subscribe()
    }

    /// Appends an entry, remembers its leaf for the next checkpoint, and tells subscribers.
    pub(crate) async fn append(&self, entry: Entry) -> StoreResult<Appended> {
        let leaf = leaf_hash(&entry.body);
        let appended = self.ledger.append(entry).await?;
        if let Appended::At(seq) = appended {
            self.note(seq, leaf);
            if self.receipts.receiver_count() > 0 {
                // It only fails when the last subscriber has left meanwhile.
                let _ = self.receipts.send(DurableReceipt { seq, at: self.clock.unix_millis() });
            }
        }
        Ok(appended)
    }

    /// Remembers a leaf for the next checkpoint, unless one covers it already: its entry may have
    /// been read from the store before the call that appended it was told.
    fn note(&self, seq: u64, leaf: Hash) {
        let mut pending = self.pending.lock();
        if seq >= pending.next {
            pending.leaves.insert(seq, leaf);
        }
        if pending.leaves.len() >= self.batch {
            self.full.notify_one();
        }
    }

    /// Signs checkpoints over all full batches, and over the rest too when `partial`.
    pub(crate) async fn checkpoint(
        &self,
        key: &Keypair,
        issued_at: u64,
        partial: bool,
    ) -> Result<(), KernelError> {
        let mut chain = self.chain.lock().await;
        while let Some((batch, size)) = self.next_batch(partial) {
            let mut frontier = chain.frontier.clone();
            let previous = chain.previous.as_ref();
            let checkpoint =
                KernelCheckpoint::issue(previous, &mut frontier, batch, issued_at, key)?;
            self.ledger.checkpoint(checkpoint.clone()).await?;
            *chain = Chain { previous: Some(checkpoint), frontier };
            let mut pending = self.pending.lock();
            pending.next = batch.end_seq + 1;
            for _ in 0..size {
                pending.leaves.pop_first();
            }
        }
        Ok(())
    }

    /// Has a mark kept of what is durable now, unless neither the checkpoints nor the epoch of
    /// revocations have moved since the last one. Refused as [`StoreError::RolledBack`] when the store
    /// has less than this kernel has signed.
    pub(crate) async fn keep_mark(
        &self,
        store: &dyn Store,
        key: &Keypair,
        epoch: u64,
    ) -> Result<(), KernelError> {
        let mut marked = self.marked.lock().await;
        let last = self.chain.lock().await.previous.clone();
        let seq = last.as_ref().map(|last| last.body.checkpoint_seq);
        let has = |mark: &Mark| mark.checkpoint.as_ref().map(|marked| marked.checkpoint_seq) == seq;
        if marked.as_ref().is_some_and(|(mark, of)| has(mark) && *of == epoch) {
            return Ok(());
        }
        let (store_id, numbers) = (store.store_id().await?, store.numbers().await?);
        let mark = Mark::issue(key, store_id, last.as_ref(), numbers)?;
        // SECURITY: a mark of less would make what was taken from a store in use good.
        let before = marked.as_ref().map(|(mark, _)| mark);
        let fallen = decreases(store, before, &mark).await?;
        if !fallen.is_empty() {
            return Err(StoreError::RolledBack(fallen.join("; ")).into());
        }
        let is_first = self.ledger.keep_mark(mark.clone()).await?;
        if let Some(last) = last.filter(|_| is_first) {
            let (entries, log_id) = (last.body.batch_end_seq, &self.log_id);
            tracing::warn!(
                "there was no mark of {log_id}, so nothing shows what was taken from its end: one is \
                 kept from now on, beginning with the {entries} receipts that are there"
            );
        }
        *marked = Some((mark, epoch));
        Ok(())
    }

    /// The next batch without a gap, and how many leaves it has.
    fn next_batch(&self, partial: bool) -> Option<(Batch, usize)> {
        let pending = self.pending.lock();
        let mut leaves = Vec::with_capacity(self.batch);
        for (expected, (seq, leaf)) in (pending.next..).zip(&pending.leaves).take(self.batch) {
            if *seq != expected {
                break;
            }
            leaves.push(*leaf);
        }
        if leaves.len() < self.batch && !partial {
            return None;
        }
        let size = leaves.len();
        let end_seq = pending.next + u64::try_from(size.checked_sub(1)?).ok()?;
        let merkle_root = merkle::root(&leaves)?;
        Some((Batch { start_seq: pending.next, end_seq, merkle_root }, size))
    }

    /// Reads leaves that were appended without word of it: a call's task may have ended
    /// between its commit and its answer.
    pub(crate) async fn fill_gaps(&self, store: &dyn Store) -> StoreResult<()> {
        let gap = {
            let pending = self.pending.lock();
            let first = pending.leaves.first_key_value().map(|(seq, _)| *seq);
            first.filter(|first| *first > pending.next).map(|first| (pending.next, first))
        };
        match gap {
            Some((from, until)) => self.read_from(store, from, Some(until)).await,
            None => Ok(()),
        }
    }

    /// Reads every entry that the log does not know of.
    pub(crate) async fn read_rest(&self, store: &dyn Store) -> StoreResult<()> {
        self.fill_gaps(store).await?;
        let from = {
            let pending = self.pending.lock();
            pending.leaves.last_key_value().map_or(pending.next, |(seq, _)| seq + 1)
        };
        self.read_from(store, from, None).await
    }

    async fn read_from(
        &self,
        store: &dyn Store,
        mut from: u64,
        until: Option<u64>,
    ) -> StoreResult<()> {
        loop {
            let entries = store.entries(&self.log_id, from, PAGE).await?;
            let Some(last) = entries.last() else { return Ok(()) };
            from = last.seq + 1;
            let mut pending = self.pending.lock();
            for entry in entries.iter().filter(|entry| until.is_none_or(|end| entry.seq < end)) {
                pending.leaves.insert(entry.seq, leaf_hash(&entry.body));
            }
            if until.is_some_and(|end| from >= end) {
                return Ok(());
            }
        }
    }
}

/// The chain of checkpoints so far; refused when it is not this kernel's.
async fn read_chain(store: &dyn Store, log_id: &str, key: &PublicKey) -> StoreResult<Chain> {
    let mut chain = Chain::default();
    loop {
        let from = chain.frontier.size() + 1;
        let page = LogStore::checkpoints(store, log_id, from, PAGE).await?;
        if page.is_empty() {
            break;
        }
        for checkpoint in page {
            let leaf = checkpoint.body.chain_leaf();
            chain.frontier.push(leaf.map_err(|error| damaged(&error.to_string()))?);
            chain.previous = Some(checkpoint);
        }
    }
    if let Some(last) = &chain.previous {
        let sound = last.body.kernel_key == *key
            && last.check_signature().is_ok()
            && last.body.checkpoint_seq == chain.frontier.size()
            && last.body.chain_root == chain.frontier.root();
        if !sound {
            return Err(damaged("the last checkpoint of this kernel's log does not hold"));
        }
    }
    Ok(chain)
}

fn damaged(problem: &str) -> StoreError {
    StoreError::Damaged(problem.to_owned())
}
