//! The outgoing side of line framing: a queue of lines and the task that writes them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Beyond this many queued bytes, the reader of requests has to pause.
const MAX_QUEUED: usize = 32 << 20;
/// Beyond this many queued bytes, lines that may be dropped are.
const CONGESTED: usize = MAX_QUEUED / 8;
/// How often a queue without room is checked again.
const POLL: Duration = Duration::from_millis(10);

/// Queues lines for a writer. Clones share the queue.
#[derive(Debug, Clone)]
pub struct LineSender {
    sender: mpsc::UnboundedSender<String>,
    queued_bytes: Arc<AtomicUsize>,
}

/// The end of a queue that writes its lines.
#[derive(Debug)]
pub struct LineWriter {
    receiver: mpsc::UnboundedReceiver<String>,
    queued_bytes: Arc<AtomicUsize>,
}

/// An empty queue of lines.
pub fn line_queue() -> (LineSender, LineWriter) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let queued_bytes = Arc::<AtomicUsize>::default();
    let writer = LineWriter { receiver, queued_bytes: Arc::clone(&queued_bytes) };
    (LineSender { sender, queued_bytes }, writer)
}

impl LineSender {
    /// Queues a line. The queue is bounded by the callers: responses by the number of requests
    /// that run at once and the size of each, everything else by being `droppable` while the
    /// client reads too slowly.
    pub fn send(&self, line: String, droppable: bool) {
        if droppable && self.is_congested() {
            return;
        }
        self.queued_bytes.fetch_add(line.len(), Ordering::Relaxed);
        // A client that is gone reads nothing.
        let _ = self.sender.send(line);
    }

    /// Queues a line as soon as the queue has room for it. False when the writer is gone.
    pub async fn send_when_ready(&self, line: String) -> bool {
        while self.is_congested() && !self.sender.is_closed() {
            tokio::time::sleep(POLL).await;
        }
        self.send(line, false);
        !self.sender.is_closed()
    }

    /// Waits until the queue has room for the responses to another request.
    pub async fn ready(&self) {
        while self.queued() > MAX_QUEUED && !self.sender.is_closed() {
            tokio::time::sleep(POLL).await;
        }
    }

    fn queued(&self) -> usize {
        self.queued_bytes.load(Ordering::Relaxed)
    }

    fn is_congested(&self) -> bool {
        self.queued() > CONGESTED
    }
}

impl LineWriter {
    /// Writes lines until every sender is gone.
    ///
    /// # Errors
    /// When the stream fails.
    pub async fn write_to<W: AsyncWrite + Unpin>(mut self, mut writer: W) -> io::Result<()> {
        while let Some(mut line) = self.receiver.recv().await {
            self.queued_bytes.fetch_sub(line.len(), Ordering::Relaxed);
            line.push('\n');
            writer.write_all(line.as_bytes()).await?;
            writer.flush().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_written_in_order_and_droppable_ones_are_dropped_under_congestion() {
        let (sender, writer) = line_queue();
        sender.send("a".to_owned(), true);
        sender.send("b".repeat(CONGESTED + 1), false);
        sender.send("dropped".to_owned(), true);
        sender.send("c".to_owned(), false);
        drop(sender);
        let mut written = Vec::new();
        writer.write_to(&mut written).await.unwrap();
        let lines: Vec<&str> = std::str::from_utf8(&written).unwrap().lines().collect();
        let lengths: Vec<usize> = lines.iter().map(|line| line.len()).collect();
        assert_eq!(lengths, [1, CONGESTED + 1, 1]);
        assert_eq!((lines[0], lines[2]), ("a", "c"));
    }

    #[tokio::test]
    async fn a_sender_does_not_wait_for_a_writer_that_is_gone() {
        let (sender, writer) = line_queue();
        assert!(sender.send_when_ready("a".to_owned()).await);
        sender.send("b".repeat(MAX_QUEUED + 1), false);
        drop(writer);
        assert!(!sender.send_when_ready("c".to_owned()).await);
        sender.ready().await;
    }
}
