//! A line for each receipt of a kernel, as soon as it is durable.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use async_trait::async_trait;
use chio_core::checkpoint::KernelCheckpoint;
use chio_core::receipt::LoggedReceipt;
use chio_kernel::Clock;
use chio_kernel::store::{
    Abandoned, Appended, Entry, Ledger, OpenIntent, Opened, Opening, Reservation, Reserved,
    StoreResult,
};
use tokio::sync::mpsc;

use crate::commands::Summary;
use crate::date::time_of_day;
use crate::io::Io;
use crate::request_id::made_at;

/// How many receipts wait for a terminal that is slow; more are only counted.
const MOST_WAITING: usize = 1024;
/// How much of an id tells receipts apart for people.
const SHORT: usize = 12;

/// A receipt that has become durable.
#[derive(Debug)]
struct Signed {
    body: Vec<u8>,
    /// When it had, in milliseconds since 1970.
    at: u64,
}

/// Receipts as they become durable.
#[derive(Debug)]
pub(crate) struct Receipts {
    waiting: mpsc::Receiver<Signed>,
    missed: Arc<AtomicU64>,
}

/// Hands on each receipt that a kernel's log takes.
pub(crate) struct Watched {
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    sink: Sink,
}

/// Where receipts are handed to. Whoever does not keep up misses some.
#[derive(Debug, Clone)]
pub(crate) struct Sink {
    waiting: mpsc::Sender<Signed>,
    missed: Arc<AtomicU64>,
}

/// A place for receipts, and where they come out.
pub(crate) fn channel() -> (Sink, Receipts) {
    let (sender, waiting) = mpsc::channel(MOST_WAITING);
    let missed = Arc::<AtomicU64>::default();
    (Sink { waiting: sender, missed: Arc::clone(&missed) }, Receipts { waiting, missed })
}

impl Watched {
    pub(crate) fn new(ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>, sink: Sink) -> Arc<Self> {
        Arc::new(Self { ledger, clock, sink })
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

#[async_trait]
impl Ledger for Watched {
    async fn open(&self, opening: Opening) -> StoreResult<Opened> {
        self.ledger.open(opening).await
    }

    async fn reserve(&self, reservation: Reservation) -> StoreResult<Reserved> {
        self.ledger.reserve(reservation).await
    }

    async fn append(&self, entry: Entry) -> StoreResult<Appended> {
        let body = entry.body.clone();
        let appended = self.ledger.append(entry).await?;
        if matches!(appended, Appended::At(_)) {
            let signed = Signed { body, at: self.clock.unix_millis() };
            if self.sink.waiting.try_send(signed).is_err() {
                self.sink.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(appended)
    }

    async fn checkpoint(&self, checkpoint: KernelCheckpoint) -> StoreResult<()> {
        self.ledger.checkpoint(checkpoint).await
    }

    async fn open_intents(&self) -> StoreResult<Vec<OpenIntent>> {
        self.ledger.open_intents().await
    }

    async fn abandoned(&self) -> StoreResult<Vec<Abandoned>> {
        self.ledger.abandoned().await
    }
}

impl Receipts {
    /// Prints while something else goes on, and then what is left.
    pub(crate) async fn print_during<T>(
        mut self,
        io: &mut Io<'_>,
        other: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut other = std::pin::pin!(other);
        let ended = loop {
            tokio::select! {
                biased;
                Some(signed) = self.waiting.recv() => {
                    self.print(io, &signed)?;
                    if self.waiting.is_empty() {
                        io.flush()?;
                    }
                }
                ended = &mut other => break ended,
            }
        };
        while let Ok(signed) = self.waiting.try_recv() {
            self.print(io, &signed)?;
        }
        ended
    }

    fn print(&self, io: &mut Io<'_>, signed: &Signed) -> Result<()> {
        if let Some(line) = line(signed) {
            io.say(line)?;
        }
        match self.missed.swap(0, Ordering::Relaxed) {
            0 => Ok(()),
            missed => io.say(format_args!("and {missed} more: chio receipt list")),
        }
    }
}

/// What is printed of a receipt: when, what, how it ended, its id, and how long it took.
fn line(signed: &Signed) -> Option<String> {
    let receipt = LoggedReceipt::from_slice(&signed.body).ok()?;
    let Summary { verdict, mut what, why } = Summary::of(&receipt);
    if matches!(receipt, LoggedReceipt::Child(_)) {
        what.insert_str(0, "  ");
    }
    let time = time_of_day(receipt.timestamp());
    let id: String = shortened(receipt.id());
    let took = receipt.request_id().and_then(made_at).map(|made| signed.at.saturating_sub(made));
    let took = took.map_or_else(String::new, |ms| format!("{ms} ms"));
    Some(format!("{time}  {verdict:<10}  {what:<28}  {id}  {took:>7}  {why}"))
}

/// The beginning of an id, after the word before it.
fn shortened(id: &str) -> String {
    id.strip_prefix("child-rcpt-").unwrap_or(id).chars().take(SHORT).collect()
}
