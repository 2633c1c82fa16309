//! What is on its way to a child: a bounded queue of lines and the task that writes them.
//!
//! No call waits for a child that does not read: what does not fit is refused at once.

use std::io;
use std::mem;

use parking_lot::Mutex;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

/// Room beyond the bound for what must not be lost: answers, and that a request is cancelled.
const URGENT: usize = 1 << 20;

/// Lines on their way to a child.
pub(crate) struct Outbox {
    max: usize,
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    /// Bytes that are being written.
    writing: usize,
    finished: bool,
}

impl Outbox {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, queue: Mutex::default(), changed: Notify::new() }
    }

    /// Queues a line; tells whether there was room for it.
    pub(crate) fn push(&self, line: &[u8]) -> bool {
        self.push_within(line, self.max)
    }

    /// Queues a line that must not be lost, as far as that can be.
    pub(crate) fn push_urgent(&self, line: &[u8]) -> bool {
        self.push_within(line, self.max.saturating_add(URGENT))
    }

    fn push_within(&self, line: &[u8], max: usize) -> bool {
        let mut queue = self.queue.lock();
        let waiting = queue.bytes.len().saturating_add(queue.writing);
        // A line that is larger than everything goes alone.
        if queue.finished || (waiting > 0 && waiting.saturating_add(line.len()) > max) {
            return false;
        }
        queue.bytes.extend_from_slice(line);
        drop(queue);
        self.changed.notify_one();
        true
    }

    /// What is queued.
    #[cfg(test)]
    pub(crate) fn queued(&self) -> String {
        String::from_utf8(mem::take(&mut self.queue.lock().bytes)).unwrap()
    }

    /// Takes no more lines; the writer ends when all are written.
    pub(crate) fn finish(&self) {
        self.queue.lock().finished = true;
        self.changed.notify_one();
    }

    /// Writes what is queued until the outbox is finished and empty, then closes the writer.
    pub(crate) async fn write_to<W: AsyncWrite + Unpin>(&self, mut writer: W) -> io::Result<()> {
        let mut batch = Vec::new();
        loop {
            let finished = {
                let mut queue = self.queue.lock();
                mem::swap(&mut queue.bytes, &mut batch);
                queue.writing = batch.len();
                queue.finished
            };
            if !batch.is_empty() {
                writer.write_all(&batch).await?;
                writer.flush().await?;
                batch = Vec::new();
            } else if finished {
                return writer.shutdown().await;
            } else {
                self.changed.notified().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn lines_arrive_in_order_and_the_end_after_them() {
        let outbox = Outbox::new(100);
        assert!(outbox.push(b"a\n") && outbox.push_urgent(b"b\n"));
        outbox.finish();
        assert!(!outbox.push(b"c\n"));
        let (near, mut far) = tokio::io::duplex(64);
        outbox.write_to(near).await.unwrap();
        let mut arrived = String::new();
        far.read_to_string(&mut arrived).await.unwrap();
        assert_eq!(arrived, "a\nb\n");
    }

    #[tokio::test]
    async fn what_does_not_fit_is_refused() {
        let outbox = Outbox::new(4);
        assert!(outbox.push(b"123\n"));
        assert!(!outbox.push(b"1\n"));
        assert!(outbox.push_urgent(b"1\n"));
        assert!(!outbox.push_urgent(&[b'x'; URGENT]));
    }

    #[test]
    fn a_line_larger_than_everything_goes_alone() {
        let outbox = Outbox::new(4);
        assert!(outbox.push(b"123456789\n"));
        assert!(!outbox.push(b"1\n"));
    }

    #[tokio::test]
    async fn what_is_being_written_counts() {
        let outbox = Outbox::new(4);
        assert!(outbox.push(b"123\n"));
        let (near, _far) = tokio::io::duplex(1);
        let write = outbox.write_to(near);
        tokio::select! {
            biased;
            _ = write => panic!("nobody reads"),
            () = tokio::task::yield_now() => {}
        }
        assert!(!outbox.push(b"1\n"));
    }
}
