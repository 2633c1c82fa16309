//! Where receipts are read from: a store, or exports in place of one.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use chio_core::canonical;
use chio_kernel::SystemClock;
use chio_kernel::store::{Entry, ReceiptQuery, ReceiptRow, SharedStore};
use chio_store::{OpenStore, StoreUrl};

use super::bundle;
use crate::io::Io;
use crate::store_args::StoreArgs;

/// Where receipts are read from.
#[derive(Debug, clap::Args)]
pub(super) struct SourceArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Look in this export in place of the store; can be repeated
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "store"])]
    bundle: Vec<PathBuf>,
}

/// Receipts that can be asked for.
pub(super) struct Source {
    pub(super) store: SharedStore,
    /// Where each receipt of an export stands: those are in a store of their own here.
    places: Vec<(String, u64)>,
}

impl SourceArgs {
    /// Opens it.
    pub(super) async fn open(&self, io: &mut Io<'_>) -> Result<Source> {
        if self.bundle.is_empty() {
            let store = self.store.open_existing(io).await?.shared();
            return Ok(Source { store, places: Vec::new() });
        }
        let mut entries = bundle::entries(io, &self.bundle)?;
        let mut seen = HashSet::new();
        entries.retain(|entry| seen.insert(entry.receipt.id().to_owned()));
        entries.sort_by_key(|entry| entry.receipt.timestamp());
        let open = OpenStore::open(&StoreUrl::Memory, Arc::new(SystemClock::default())).await?;
        let slot = open.take_slot(None).await?;
        let mut places = Vec::with_capacity(entries.len());
        for entry in entries {
            let body = canonical::to_vec(&entry.receipt)?;
            slot.ledger.append(Entry::new(body)).await?;
            places.push((entry.log_id, entry.seq));
        }
        Ok(Source { store: open.shared(), places })
    }
}

impl Source {
    /// Receipts that answer a query, each with its place in the log that it is from.
    pub(super) async fn query(&self, query: &ReceiptQuery) -> Result<Vec<ReceiptRow>> {
        let mut rows = self.store.query(query).await?;
        for row in &mut rows {
            let at = usize::try_from(row.seq)?.checked_sub(1);
            if let Some((log_id, seq)) = at.and_then(|at| self.places.get(at)) {
                (row.log_id, row.seq) = (log_id.clone(), *seq);
            }
        }
        Ok(rows)
    }
}
