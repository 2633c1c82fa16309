//! The one way out of a connection: a bounded queue of frames and the task that writes them.
//!
//! A task with a frame waits until there is room for it. All frames that have gathered while the
//! last ones were written are written together.

use std::io;
use std::mem;

use chio_core::canonical;
use chio_core::frame::{FrameError, MAX_PAYLOAD, PREFIX_LEN};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

/// Why a frame does not go out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    /// The other end takes nothing more.
    #[error("the connection is closed")]
    Closed,
    /// It is no frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// Frames on their way out.
pub(crate) struct Outbox {
    /// How many bytes may be queued.
    capacity: usize,
    /// A permit for each byte that may still be queued.
    room: Semaphore,
    queue: Mutex<Queue>,
    /// Tells the writer that there is something to do.
    changed: Notify,
    /// Cancelled when nothing can be written any more.
    broken: CancellationToken,
}

#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    /// Batches that were written.
    written: u64,
    /// Permits that the bytes hold. A frame beyond the capacity holds all there are.
    held: usize,
    finished: bool,
}

impl Outbox {
    /// An empty outbox for this many bytes.
    pub(crate) fn new(capacity: usize) -> Self {
        // A semaphore counts what it is asked for in 32 bits.
        let capacity = capacity.clamp(1, MAX_PAYLOAD);
        Self {
            capacity,
            room: Semaphore::new(capacity),
            queue: Mutex::default(),
            changed: Notify::new(),
            broken: CancellationToken::new(),
        }
    }

    /// Queues a message as soon as there is room.
    pub(crate) async fn send<T: Serialize + Sync>(&self, message: &T) -> Result<(), SendError> {
        self.send_payload(&canonical::to_vec(message).map_err(FrameError::from)?).await
    }

    /// Queues the payload of one frame as soon as there is room.
    pub(crate) async fn send_payload(&self, payload: &[u8]) -> Result<(), SendError> {
        let too_large = || FrameError::TooLarge(u64::try_from(payload.len()).unwrap_or(u64::MAX));
        if payload.len() > MAX_PAYLOAD {
            return Err(too_large().into());
        }
        let prefix = u32::try_from(payload.len()).map_err(|_| too_large())?.to_be_bytes();
        let held = (PREFIX_LEN + payload.len()).min(self.capacity);
        let permits = u32::try_from(held).map_err(|_| too_large())?;
        let room = self.room.acquire_many(permits).await.map_err(|_| SendError::Closed)?;
        {
            let mut queue = self.queue.lock();
            if queue.finished {
                return Err(SendError::Closed);
            }
            queue.bytes.extend_from_slice(&prefix);
            queue.bytes.extend_from_slice(payload);
            queue.held += held;
        }
        // The writer gives it back.
        room.forget();
        self.changed.notify_one();
        Ok(())
    }

    /// Takes no more frames; the writer ends when all are written.
    pub(crate) fn finish(&self) {
        self.queue.lock().finished = true;
        self.changed.notify_one();
    }

    /// How far writing has come; none when everything that waited is written.
    pub(crate) fn waiting_at(&self) -> Option<u64> {
        // Whatever is queued or being written holds room.
        let idle = self.room.available_permits() >= self.capacity;
        (!idle).then(|| self.queue.lock().written)
    }

    /// Cancelled when nothing can be written any more.
    pub(crate) const fn broken(&self) -> &CancellationToken {
        &self.broken
    }

    /// Writes what is queued until the outbox is finished and empty.
    pub(crate) async fn write_to<W: AsyncWrite + Unpin>(&self, mut writer: W) -> io::Result<()> {
        let outcome = self.write_all(&mut writer).await;
        if outcome.is_err() {
            self.break_off();
        }
        outcome
    }

    /// Takes no more frames and forgets those that are queued.
    pub(crate) fn break_off(&self) {
        self.room.close();
        let mut queue = self.queue.lock();
        queue.finished = true;
        queue.bytes = Vec::new();
        drop(queue);
        self.broken.cancel();
        self.changed.notify_one();
    }

    async fn write_all<W: AsyncWrite + Unpin>(&self, writer: &mut W) -> io::Result<()> {
        let mut batch = Vec::new();
        loop {
            let (held, finished) = self.take(&mut batch);
            if !batch.is_empty() {
                writer.write_all(&batch).await?;
                writer.flush().await?;
                self.queue.lock().written += 1;
                self.room.add_permits(held);
                batch.clear();
                batch.shrink_to(self.capacity);
            } else if finished {
                return writer.shutdown().await;
            } else {
                self.changed.notified().await;
            }
        }
    }

    /// Exchanges the queued bytes for an empty batch.
    fn take(&self, batch: &mut Vec<u8>) -> (usize, bool) {
        let mut queue = self.queue.lock();
        mem::swap(&mut queue.bytes, batch);
        (mem::take(&mut queue.held), queue.finished)
    }
}

#[cfg(test)]
mod tests;
