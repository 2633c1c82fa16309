//! A line for each receipt of a kernel, as soon as it is durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

use crate::date::time_of_day;
use crate::io::Io;
use crate::receipt_summary::Summary;
use crate::request_id::made_at;

/// How many receipts wait for a terminal that is slow; more are only counted.
const MOST_WAITING: usize = 1024;
/// How many are shown in a second. No operator reads more, and each costs time that calls need.
const MOST_IN_A_SECOND: u64 = 50;
/// How often those that were only counted are told.
const BEAT: Duration = Duration::from_secs(1);
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

/// Where receipts are handed to. A receiver that does not keep up misses some.
#[derive(Debug)]
pub(crate) struct Sink {
    waiting: mpsc::Sender<Signed>,
    missed: Arc<AtomicU64>,
    /// The second that is counted, and how many were handed on in it.
    second: AtomicU64,
    in_second: AtomicU64,
}

impl Sink {
    /// Whether another one is to be shown now. Where two seconds meet, a few more may be.
    fn has_room(&self, now: u64) -> bool {
        let second = now / 1000;
        if self.second.swap(second, Ordering::Relaxed) != second {
            self.in_second.store(0, Ordering::Relaxed);
        }
        self.in_second.fetch_add(1, Ordering::Relaxed) < MOST_IN_A_SECOND
    }

    fn miss(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }
}

/// A place for receipts, and where they come out.
pub(crate) fn channel() -> (Sink, Receipts) {
    let (sender, waiting) = mpsc::channel(MOST_WAITING);
    let missed = Arc::<AtomicU64>::default();
    let sink = Sink {
        waiting: sender,
        missed: Arc::clone(&missed),
        second: AtomicU64::default(),
        in_second: AtomicU64::default(),
    };
    (sink, Receipts { waiting, missed })
}

impl Watched {
    pub(crate) fn new(ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>, sink: Sink) -> Arc<Self> {
        Arc::new(Self { ledger, clock, sink })
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
        let room = self.sink.has_room(self.clock.unix_millis());
        let body = room.then(|| entry.body.clone());
        let appended = self.ledger.append(entry).await?;
        if !matches!(appended, Appended::At(_)) {
            return Ok(appended);
        }
        let signed = body.map(|body| Signed { body, at: self.clock.unix_millis() });
        let sent = signed.is_some_and(|signed| self.sink.waiting.try_send(signed).is_ok());
        if !sent {
            self.sink.miss();
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
        let mut beat = tokio::time::interval(BEAT);
        let ended = loop {
            tokio::select! {
                biased;
                Some(signed) = self.waiting.recv() => print(io, &signed)?,
                ended = &mut other => break ended,
                _ = beat.tick() => self.print_missed(io)?,
            }
            if self.waiting.is_empty() {
                io.flush()?;
            }
        };
        while let Ok(signed) = self.waiting.try_recv() {
            print(io, &signed)?;
        }
        self.print_missed(io)?;
        ended
    }

    fn print_missed(&self, io: &mut Io<'_>) -> Result<()> {
        match self.missed.swap(0, Ordering::Relaxed) {
            0 => Ok(()),
            missed => io.say(format_args!("          and {missed} more: chio receipt list")),
        }
    }
}

fn print(io: &mut Io<'_>, signed: &Signed) -> Result<()> {
    line(signed).map_or(Ok(()), |line| io.say(line))
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use chio_kernel::store::{Entry, Ledger};
    use chio_kernel::{Clock, SystemClock};
    use chio_store::{OpenStore, StoreUrl};
    use chio_testkit::golden;
    use serde_json::Value;

    use super::{MOST_IN_A_SECOND, Watched, channel};
    use crate::io::Io;

    /// A clock that stands still.
    #[derive(Debug)]
    struct Still(u64);

    impl Clock for Still {
        fn unix_millis(&self) -> u64 {
            self.0
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    /// What is printed when this many receipts are signed in one second.
    async fn printed(count: u64) -> Vec<String> {
        let store =
            OpenStore::open(&StoreUrl::Memory, Arc::new(SystemClock::default())).await.unwrap();
        let (sink, receipts) = channel();
        let ledger = store.take_slot(None).await.unwrap().ledger;
        let watched = Watched::new(ledger, Arc::new(Still(1_700_000_000_000)), sink);
        let receipt: Value = golden::load("receipt")["deny"]["receipt"].clone();
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let mut io = Io {
            input: None,
            output: &mut output,
            errors: &mut errors,
            folder: Path::new(""),
            now: 0,
        };
        let signing = async {
            for number in 0..count {
                let mut receipt = receipt.clone();
                receipt["id"] = number.to_string().into();
                let entry = Entry { body: receipt.to_string().into_bytes(), closes: None };
                watched.append(entry).await.unwrap();
            }
            Ok(())
        };
        receipts.print_during(&mut io, signing).await.unwrap();
        String::from_utf8(output).unwrap().lines().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn each_receipt_is_a_line_with_its_verdict() {
        let lines = printed(2).await;
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().all(|line| line.contains("  deny  ")), "{lines:?}");
    }

    #[tokio::test]
    async fn what_nobody_could_read_is_only_counted() {
        let lines = printed(MOST_IN_A_SECOND + 7).await;
        let (shown, rest) = lines.split_at(usize::try_from(MOST_IN_A_SECOND).unwrap());
        assert!(shown.iter().all(|line| line.contains("  deny  ")), "{shown:?}");
        assert_eq!(rest, ["          and 7 more: chio receipt list"]);
    }
}
