//! Bundles, piece by piece: what is at hand is one page of checkpoints or the entries of a batch, and
//! for each receipt no more than its place.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use chio_core::bundle::{
    BUNDLE_SCHEMA, BundleEntry, ConsistencyEvidence, Coverage, LogCoverage, ReceiptBundle,
};
use chio_core::certificate::KernelCertificate;
use chio_core::checkpoint::KernelCheckpoint;
use chio_core::merkle::Tree;
use chio_core::receipt::LoggedReceipt;

use super::{Batch, chain_leaf, each_checkpoint};
use crate::store::{LogStore, LogSummary, ReceiptRow, StoreError, StoreResult};

/// Where a receipt is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its log.
    pub log_id: Arc<str>,
    /// Its place in the log, from 1.
    pub seq: u64,
}

impl From<&ReceiptRow> for Place {
    fn from(row: &ReceiptRow) -> Self {
        Self { log_id: row.log_id.as_str().into(), seq: row.seq }
    }
}

/// A piece of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Of a kernel that signed.
    Certificate(KernelCertificate),
    /// One that covers receipts, or the last of a log.
    Checkpoint(KernelCheckpoint),
    /// That a checkpoint's chain is the beginning of the last one's.
    Consistency(ConsistencyEvidence),
    /// A receipt.
    Entry(Box<BundleEntry>),
    /// What the bundle has of a log.
    Coverage(LogCoverage),
}

/// A bundle of these receipts: everything that a reader without the store needs to verify them.
///
/// # Errors
/// When the store does not answer, or does not hold what it should.
pub async fn bundle(
    store: &(impl LogStore + ?Sized),
    rows: &[ReceiptRow],
) -> StoreResult<ReceiptBundle> {
    let places: Vec<Place> = rows.iter().map(Place::from).collect();
    let mut bundle = ReceiptBundle {
        certificates: Vec::new(),
        checkpoints: Vec::new(),
        consistency: Vec::new(),
        coverage: Vec::new(),
        entries: Vec::with_capacity(rows.len()),
        schema: BUNDLE_SCHEMA.to_owned(),
        store_id: store.store_id().await?,
    };
    export(store, &places, |part| {
        match part {
            Part::Certificate(part) => bundle.certificates.push(part),
            Part::Checkpoint(part) => bundle.checkpoints.push(part),
            Part::Consistency(part) => bundle.consistency.push(part),
            Part::Entry(part) => bundle.entries.push(*part),
            Part::Coverage(part) => bundle.coverage.push(part),
        }
        Ok::<(), StoreError>(())
    })
    .await?;
    Ok(bundle)
}

/// Hands over a bundle of these receipts piece by piece: certificates, checkpoints, consistency,
/// receipts in the order given, coverage. Takes a time linear in the checkpoints of the logs and in
/// the receipts under the same checkpoints.
///
/// # Errors
/// When the store does not answer, does not hold what it should, or `take` fails.
pub async fn export<E: From<StoreError>>(
    store: &(impl LogStore + ?Sized),
    places: &[Place],
    mut take: impl FnMut(Part) -> Result<(), E>,
) -> Result<(), E> {
    let (covering, numbers) = covering(store, places).await?;
    let logs = store.logs().await?.into_iter();
    let logs: Vec<LogSummary> =
        logs.filter(|log| places.iter().any(|place| *place.log_id == *log.log_id)).collect();
    for certificate in logs.iter().flat_map(|log| &log.certificates) {
        take(Part::Certificate(certificate.clone()))?;
    }
    let none = BTreeSet::new();
    let mut trees = Vec::with_capacity(logs.len());
    for log in &logs {
        let (numbers, mut leaves) = (numbers.get(&*log.log_id).unwrap_or(&none), Vec::new());
        each_checkpoint(store, &log.log_id, log.checkpoints, |checkpoint| {
            leaves.push(chain_leaf(&checkpoint)?);
            let number = checkpoint.body.checkpoint_seq;
            if numbers.contains(&number) || number == log.checkpoints {
                take(Part::Checkpoint(checkpoint))?;
            }
            Ok::<(), E>(())
        })
        .await?;
        trees.push((log, numbers, Tree::new(leaves)));
    }
    for (log, numbers, tree) in trees {
        for number in numbers.iter().filter(|number| **number != log.checkpoints) {
            let proof = tree.consistency(usize::try_from(*number).unwrap_or(usize::MAX));
            let log_id = log.log_id.clone();
            let proof = proof.ok_or_else(|| {
                StoreError::Damaged(format!("expected checkpoint {number} in {log_id}, found none"))
            })?;
            take(Part::Consistency(ConsistencyEvidence { log_id, proof }))?;
        }
    }
    let mut coverage = Coverage::default();
    let mut batches: HashMap<&str, Batch> = HashMap::new();
    for (place, number) in places.iter().zip(covering) {
        let entry = entry(store, place, number, &mut batches).await?;
        coverage.note(&entry);
        take(Part::Entry(Box::new(entry)))?;
    }
    coverage.logs().into_iter().try_for_each(|log| take(Part::Coverage(log)))
}

/// The number of the checkpoint over each place, and those of each log; none while there is none.
async fn covering<'a>(
    store: &(impl LogStore + ?Sized),
    places: &'a [Place],
) -> StoreResult<(Vec<Option<u64>>, HashMap<&'a str, BTreeSet<u64>>)> {
    let mut covering = Vec::with_capacity(places.len());
    let mut numbers: HashMap<&str, BTreeSet<u64>> = HashMap::new();
    let mut last: HashMap<&str, (u64, u64, u64)> = HashMap::new();
    for place in places {
        let log_id = &*place.log_id;
        if let Some((start, end, number)) = last.get(log_id)
            && (*start..=*end).contains(&place.seq)
        {
            covering.push(Some(*number));
            continue;
        }
        let found = store.covering(log_id, place.seq).await?;
        covering.push(found.as_ref().map(|found| found.body.checkpoint_seq));
        if let Some(body) = found.map(|found| found.body) {
            last.insert(log_id, (body.batch_start_seq, body.batch_end_seq, body.checkpoint_seq));
            numbers.entry(log_id).or_default().insert(body.checkpoint_seq);
        }
    }
    Ok((covering, numbers))
}

/// A receipt with its proof. The batch that was read last of each log is kept for the next one.
async fn entry<'a>(
    store: &(impl LogStore + ?Sized),
    place: &'a Place,
    number: Option<u64>,
    batches: &mut HashMap<&'a str, Batch>,
) -> StoreResult<BundleEntry> {
    let (log_id, seq) = (&*place.log_id, place.seq);
    let mut inclusion = None;
    let mut body = None;
    if let Some(number) = number {
        let batch = match batches.remove(log_id).filter(|batch| batch.has(seq)) {
            Some(batch) => batch,
            None => {
                let found = store.checkpoints(log_id, number, 1).await?.pop();
                let lost =
                    || StoreError::Damaged(format!("checkpoint {number} of {log_id} is gone"));
                Batch::read(store, log_id, found.ok_or_else(lost)?).await?
            }
        };
        inclusion = Some(batch.prove(log_id, seq)?);
        body = batch.entries.iter().find(|entry| entry.seq == seq).map(|entry| entry.body.clone());
        batches.insert(log_id, batch);
    }
    let body = match body {
        Some(body) => body,
        None => {
            let found = store.entries(log_id, seq, 1).await?.pop().filter(|it| it.seq == seq);
            let lost = || StoreError::Damaged(format!("entry {seq} of {log_id} is gone"));
            found.ok_or_else(lost)?.body
        }
    };
    let receipt = LoggedReceipt::from_slice(&body)
        .map_err(|error| StoreError::Damaged(format!("{seq} of {log_id}: {error}")))?;
    Ok(BundleEntry { inclusion, log_id: log_id.to_owned(), receipt, seq, unsigned: Vec::new() })
}
