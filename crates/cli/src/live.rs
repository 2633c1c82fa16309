//! A line for each receipt of a kernel, as soon as it is durable.

use std::time::Duration;

use anyhow::Result;
use chio_core::receipt::LoggedReceipt;
use chio_kernel::DurableReceipt;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::date::time_of_day;
use crate::io::Io;
use crate::receipt_summary::Summary;
use crate::request_id::made_at;
use crate::table::{Row, Table};
use crate::text;

/// How many are shown in a second. No operator reads more, and each costs time that calls need.
const MOST_IN_A_SECOND: u64 = 50;
/// How often those that were only counted are told.
const BEAT: Duration = Duration::from_secs(1);
/// The columns of a line.
const HEADS: [&str; 5] = ["TIME", "VERDICT", "RECEIPT", "TOOK", "WHAT"];
const WIDTHS: [usize; 5] = [8, 10, 13, 8, 0];

/// The receipts of a kernel, as far as they are shown.
pub(crate) struct Lines<F> {
    receipts: Receiver<DurableReceipt>,
    /// Gives the bytes of a receipt by its place in the log.
    logged: F,
    /// How many were shown in this second.
    shown: u64,
    /// How many were not shown since that was last told.
    missed: u64,
    table: Table,
}

impl<F: AsyncFn(u64) -> Option<Vec<u8>>> Lines<F> {
    pub(crate) fn new(receipts: Receiver<DurableReceipt>, logged: F) -> Self {
        let table = Table::fixed(&HEADS, 1, WIDTHS);
        Self { receipts, logged, shown: 0, missed: 0, table }
    }

    /// Prints what the columns are.
    pub(crate) fn head(&self, io: &mut Io<'_>) -> Result<()> {
        self.table.head(io)
    }

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
                // When enough are shown, the rest of the second costs not even a wake.
                Some(receipt) = self.next(), if self.shown < MOST_IN_A_SECOND => {
                    self.print(io, receipt).await?;
                }
                ended = &mut other => break ended,
                _ = beat.tick() => {
                    self.print_rest(io).await?;
                    self.shown = 0;
                }
            }
            if self.receipts.is_empty() || self.shown == MOST_IN_A_SECOND {
                io.flush()?;
            }
        };
        self.print_rest(io).await?;
        ended
    }

    /// The next receipt; none when the kernel is gone.
    async fn next(&mut self) -> Option<DurableReceipt> {
        loop {
            match self.receipts.recv().await {
                Ok(receipt) => return Some(receipt),
                Err(RecvError::Lagged(missed)) => self.missed += missed,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Prints what waits, as far as it may be shown in this second, and how many may not.
    async fn print_rest(&mut self, io: &mut Io<'_>) -> Result<()> {
        loop {
            match self.receipts.try_recv() {
                Ok(receipt) => self.print(io, receipt).await?,
                Err(TryRecvError::Lagged(missed)) => self.missed += missed,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        match std::mem::take(&mut self.missed) {
            0 => Ok(()),
            missed => io.say(format_args!("          and {missed} more: chio receipt list")),
        }
    }

    async fn print(&mut self, io: &mut Io<'_>, receipt: DurableReceipt) -> Result<()> {
        if self.shown == MOST_IN_A_SECOND {
            self.missed += 1;
            return Ok(());
        }
        self.shown += 1;
        let body = (self.logged)(receipt.seq).await;
        let row = body.and_then(|body| row(&body, receipt.at));
        row.map_or(Ok(()), |row| self.table.row(io, row))
    }
}

/// What is printed of a receipt: when, how it ended, its id, how long it took, what it is about, and
/// who called.
fn row(body: &[u8], at: u64) -> Option<Row> {
    let receipt = LoggedReceipt::from_slice(body).ok()?;
    let Summary { verdict, mut what, note } = Summary::of(&receipt);
    if matches!(receipt, LoggedReceipt::Child(_)) {
        what.insert_str(0, "  ");
    }
    let time = time_of_day(receipt.timestamp());
    let took = receipt.request_id().and_then(made_at).map(|made| at.saturating_sub(made));
    let took = took.map_or_else(String::new, |ms| format!("{ms} ms"));
    let id = text::short_id(receipt.id());
    Some(Row { cells: vec![time, verdict.to_owned(), id, took, what], note })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use chio_kernel::DurableReceipt;
    use chio_testkit::golden;
    use serde_json::Value;
    use tokio::sync::broadcast;

    use super::{Lines, MOST_IN_A_SECOND};
    use crate::io::Io;

    /// What is printed when this many receipts are signed in one second, and a terminal may fall
    /// this many behind.
    async fn printed(count: u64, behind: usize) -> Vec<String> {
        let (sender, receiver) = broadcast::channel(behind);
        let receipt: Value = golden::load("receipt")["deny"]["receipt"].clone();
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let mut io = Io::for_tests(&mut output, &mut errors, Path::new(""));
        let signing = async move {
            for seq in 1..=count {
                sender.send(DurableReceipt { seq, at: 1_700_000_000_000 }).unwrap();
            }
            Ok(())
        };
        let logged = async |seq: u64| {
            let mut receipt = receipt.clone();
            receipt["id"] = seq.to_string().into();
            Some(receipt.to_string().into_bytes())
        };
        Lines::new(receiver, logged).print_during(&mut io, signing).await.unwrap();
        let text = String::from_utf8(output).unwrap();
        // Below a denial stands why.
        text.lines().filter(|line| !line.starts_with("    kernel: ")).map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn each_receipt_is_a_line_with_its_verdict() {
        let lines = printed(2, 64).await;
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().all(|line| line.contains("  deny  ")), "{lines:?}");
    }

    #[tokio::test]
    async fn what_nobody_could_read_is_only_counted() {
        let lines = printed(MOST_IN_A_SECOND + 7, 64).await;
        let (shown, rest) = lines.split_at(usize::try_from(MOST_IN_A_SECOND).unwrap());
        assert!(shown.iter().all(|line| line.contains("  deny  ")), "{shown:?}");
        assert_eq!(rest, ["          and 7 more: chio receipt list"]);
    }

    #[tokio::test]
    async fn what_a_slow_terminal_missed_is_counted_too() {
        let lines = printed(40, 8).await;
        let (shown, rest) = lines.split_at(8);
        assert!(shown.iter().all(|line| line.contains("  deny  ")), "{shown:?}");
        assert_eq!(rest, ["          and 32 more: chio receipt list"]);
    }
}
