//! How messages reach a client: as events of streams, or as lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::events::{EventLog, StreamId};

/// The most bytes of lines that wait for a reader that is slow.
const MAX_WAITING: usize = 32 << 20;

/// How often a reader that is slow is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// How messages reach a client.
#[derive(Debug, Clone)]
pub(crate) enum Outlet {
    /// Over HTTP: each message belongs to a stream.
    Events(Arc<EventLog>),
    /// Over standard output: every message is a line.
    Lines(Lines),
}

impl Outlet {
    /// Sends a message. One that may be lost is dropped when the reader is too slow for it.
    pub(crate) fn send(&self, stream: StreamId, text: String, may_be_lost: bool) {
        match self {
            Self::Events(log) => log.send(stream, &text, may_be_lost),
            Self::Lines(lines) => lines.send(text, may_be_lost),
        }
    }
}

impl Outlet {
    /// Sends a message when the reader has room for it. Tells whether there is one.
    pub(crate) async fn send_in_time(&self, stream: StreamId, text: String) -> bool {
        match self {
            Self::Events(log) => log.send_in_time(stream, &text).await,
            Self::Lines(lines) => {
                while lines.is_crowded() && !lines.sender.is_closed() {
                    tokio::time::sleep(LOOK).await;
                }
                lines.send(text, false);
                !lines.sender.is_closed()
            }
        }
    }
}

/// Lines on their way to a writer.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    sender: mpsc::UnboundedSender<String>,
    waiting: Arc<AtomicUsize>,
    /// Beyond so many bytes, what may be lost is.
    crowded: usize,
}

/// The other end of [`Lines`].
#[derive(Debug)]
pub(crate) struct LineQueue {
    receiver: mpsc::UnboundedReceiver<String>,
    waiting: Arc<AtomicUsize>,
}

impl Lines {
    pub(crate) fn new() -> (Self, LineQueue) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let waiting = Arc::<AtomicUsize>::default();
        let crowded = MAX_WAITING / 8;
        (Self { sender, waiting: Arc::clone(&waiting), crowded }, LineQueue { receiver, waiting })
    }

    /// Answers are bounded by how many requests run at once, and each by the kernel; what may be
    /// lost goes when too much waits.
    pub(crate) fn send(&self, line: String, may_be_lost: bool) {
        if may_be_lost && self.is_crowded() {
            return;
        }
        self.waiting.fetch_add(line.len(), Ordering::Relaxed);
        // A client that is gone takes nothing.
        let _ = self.sender.send(line);
    }

    /// Whether so much waits that what can wait should.
    fn is_crowded(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > self.crowded
    }

    /// Whether so much waits that nothing more should be begun.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > MAX_WAITING && !self.sender.is_closed()
    }
}

impl LineQueue {
    pub(crate) async fn next(&mut self) -> Option<String> {
        let line = self.receiver.recv().await?;
        self.waiting.fetch_sub(line.len(), Ordering::Relaxed);
        Some(line)
    }
}
