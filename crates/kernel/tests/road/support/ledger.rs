//! A ledger that fails or is late when told, and tells the journal what it made durable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chio_core::checkpoint::KernelCheckpoint;
use chio_core::mark::Mark;
use chio_kernel::store::{
    Abandoned, Appended, Entry, Ledger, OpenIntent, Opened, Opening, Reservation, Reserved,
    StoreError, StoreResult, Uncovered,
};

use super::Journal;

/// How long a late write, or a late answer, takes.
pub(crate) const DELAY: Duration = Duration::from_secs(30);

/// What a ledger can be told to do, for each of its writes.
#[derive(Debug, Default)]
pub(crate) struct Fault {
    fails: AtomicBool,
    answers_late: AtomicBool,
    writes_late: AtomicBool,
}

impl Fault {
    /// From now on fail, or not.
    pub(crate) fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    /// The next write is done at once, but its answer comes late.
    pub(crate) fn answer_late_once(&self) {
        self.answers_late.store(true, Ordering::SeqCst);
    }

    /// The next write is done late.
    pub(crate) fn write_late_once(&self) {
        self.writes_late.store(true, Ordering::SeqCst);
    }

    /// What every write does first.
    async fn begin(&self) -> StoreResult<()> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("told to fail".to_owned()));
        }
        if self.writes_late.swap(false, Ordering::SeqCst) {
            tokio::time::sleep(DELAY).await;
        }
        Ok(())
    }

    async fn delay_answer(&self) {
        if self.answers_late.swap(false, Ordering::SeqCst) {
            tokio::time::sleep(DELAY).await;
        }
    }
}

/// A ledger that fails when told.
pub(crate) struct TestLedger {
    inner: Arc<dyn Ledger>,
    journal: Journal,
    pub(crate) opening: Fault,
    pub(crate) reserving: Fault,
    pub(crate) appending: Fault,
    pub(crate) checkpointing: Fault,
    reservations: Mutex<Vec<Reservation>>,
}

impl TestLedger {
    pub(crate) fn new(inner: Arc<dyn Ledger>, journal: &Journal) -> Self {
        Self {
            inner,
            journal: journal.clone(),
            opening: Fault::default(),
            reserving: Fault::default(),
            appending: Fault::default(),
            checkpointing: Fault::default(),
            reservations: Mutex::default(),
        }
    }

    /// Every reservation that was asked for.
    pub(crate) fn reservations(&self) -> Vec<Reservation> {
        self.reservations.lock().unwrap().clone()
    }
}

#[async_trait]
impl Ledger for TestLedger {
    async fn reserve(&self, reservation: Reservation) -> StoreResult<Reserved> {
        self.reserving.begin().await?;
        self.reservations.lock().unwrap().push(reservation.clone());
        let reserved = self.inner.reserve(reservation).await?;
        self.journal.note("reserve");
        self.reserving.delay_answer().await;
        Ok(reserved)
    }

    async fn open(&self, opening: Opening) -> StoreResult<Opened> {
        self.opening.begin().await?;
        let opened = self.inner.open(opening).await?;
        self.journal.note("open");
        self.opening.delay_answer().await;
        Ok(opened)
    }

    async fn append(&self, entry: Entry) -> StoreResult<Appended> {
        self.appending.begin().await?;
        let appended = self.inner.append(entry).await?;
        self.journal.note("append");
        self.appending.delay_answer().await;
        Ok(appended)
    }

    async fn checkpoint(&self, checkpoint: KernelCheckpoint) -> StoreResult<()> {
        self.checkpointing.begin().await?;
        self.inner.checkpoint(checkpoint).await?;
        self.journal.note("checkpoint");
        Ok(())
    }

    async fn keep_mark(&self, mark: Mark) -> StoreResult<bool> {
        self.inner.keep_mark(mark).await
    }

    async fn check_present(&self) -> StoreResult<()> {
        self.inner.check_present().await
    }

    async fn open_intents(&self) -> StoreResult<Vec<OpenIntent>> {
        self.inner.open_intents().await
    }

    async fn abandoned(&self) -> StoreResult<Vec<Abandoned>> {
        self.inner.abandoned().await
    }

    async fn uncovered(&self) -> StoreResult<Vec<Uncovered>> {
        self.inner.uncovered().await
    }
}
