//! Standard output that nothing waits for: a reader that has stopped must not stop what serves.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

/// How many pieces wait for the reader; further ones are left out.
const MOST_WAITING: usize = 256;
/// How long the end waits for what waits.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Writes to standard output by way of a thread of its own.
pub(crate) struct QueuedOutput {
    piece: Vec<u8>,
    pieces: SyncSender<Vec<u8>>,
    /// Ends with the thread.
    done: Receiver<()>,
}

impl QueuedOutput {
    /// The output of this process. What was written before has to be flushed.
    pub(crate) fn of_process() -> Result<Self> {
        // Not behind the lock that others hold while they write.
        let output = io::stdout().as_fd().try_clone_to_owned();
        Ok(Self::of(File::from(output.context("cannot use standard output")?)))
    }

    fn of(mut output: impl Write + Send + 'static) -> Self {
        let (pieces, waiting) = sync_channel::<Vec<u8>>(MOST_WAITING);
        let (ends, done) = channel();
        thread::spawn(move || {
            let _ends = ends;
            // A reader that has gone ends the thread, and nothing else.
            while waiting.recv().is_ok_and(|piece| output.write_all(&piece).is_ok()) {}
        });
        Self { piece: Vec::new(), pieces, done }
    }

    /// Gives what waits a moment to leave.
    pub(crate) fn finish(self) {
        let Self { pieces, done, .. } = self;
        drop(pieces);
        let _ = done.recv_timeout(LAST_WORDS);
    }
}

impl Write for QueuedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if bytes.ends_with(b"\n") {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.piece.is_empty() {
            let _ = self.pieces.try_send(std::mem::take(&mut self.piece));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use super::*;

    /// Takes nothing until it is told to.
    struct Stopped(Receiver<()>, Sender<Vec<u8>>);

    impl Write for Stopped {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_stopped_keeps_no_writer_waiting() {
        let ((go, waits), (taken, came)) = (channel(), channel());
        let mut output = QueuedOutput::of(Stopped(waits, taken));
        for number in 0..2 * MOST_WAITING {
            writeln!(output, "{number}").unwrap();
        }
        // From now on it takes what comes.
        drop(go);
        output.finish();
        let lines: Vec<Vec<u8>> = came.iter().collect();
        assert!(lines.len() >= MOST_WAITING && lines.len() < 2 * MOST_WAITING, "{}", lines.len());
        assert_eq!(lines[0], b"0\n");
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_that_never_reads() {
        let ((_go, waits), (taken, _came)) = (channel::<()>(), channel());
        let mut output = QueuedOutput::of(Stopped(waits, taken));
        writeln!(output, "x").unwrap();
        let (ended, ends) = channel();
        thread::spawn(move || {
            output.finish();
            ended.send(()).unwrap();
        });
        ends.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}
