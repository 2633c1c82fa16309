//! Lines of a stream, each within a limit of bytes.

use std::borrow::Cow;
use std::io;

use chio_core::strict::tree_size;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use crate::memory::{HeldMemory, LARGE};

/// What is kept of a buffer between two lines, and how many bytes of each are not counted.
const KEPT: usize = 64 * 1024;

/// What is kept of the end of a line that is cut.
const TAIL: usize = 256;

/// A line of a stream, without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// All of it; the memory of a large one is the caller's.
    Whole(Cow<'a, [u8]>),
    /// One that is longer than the limit. What is between was read and dropped.
    Cut {
        /// Its beginning.
        head: &'a [u8],
        /// Its end.
        tail: &'a [u8],
    },
    /// There was no memory for it, or for what it would be read into. It was dropped.
    Crowded,
}

/// Reads lines within a limit, and within the memory of the process.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    most: usize,
    buffer: Vec<u8>,
    /// The end of a line that is cut.
    tail: Vec<u8>,
    /// What the last line takes, and the tree that it is read into.
    held: HeldMemory,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Lines of at most `most` bytes each.
    pub fn new(reader: R, most: usize) -> Self {
        Self {
            reader,
            most,
            buffer: Vec::new(),
            tail: Vec::new(),
            held: HeldMemory::of_process(KEPT),
        }
    }

    /// The next line; none at the end of the stream.
    ///
    /// # Errors
    /// When the stream fails.
    pub async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT);
        self.tail.clear();
        self.held.clear();
        let (mut cut, mut begun, mut crowded) = (false, false, false);
        loop {
            let Ok(available) = self.held.unless_cut_off(self.reader.fill_buf()).await else {
                crowded = true;
                self.drop_line();
                continue;
            };
            let available = available?;
            if available.is_empty() {
                if !begun {
                    return Ok(None);
                }
                break;
            }
            begun = true;
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            let used = part.len() + usize::from(end.is_some());
            if !crowded {
                let room = self.most.saturating_sub(self.buffer.len());
                cut |= part.len() > room;
                let kept = part.get(..room.min(part.len())).unwrap_or_default();
                crowded = self.held.grow(kept.len()).await.is_err();
                self.buffer.extend_from_slice(kept);
                let dropped = part.get(kept.len()..).unwrap_or_default();
                let last = dropped.get(dropped.len().saturating_sub(TAIL)..).unwrap_or_default();
                self.tail.drain(..(self.tail.len() + last.len()).saturating_sub(TAIL));
                self.tail.extend_from_slice(last);
            }
            self.reader.consume(used);
            if crowded {
                self.drop_line();
            }
            if end.is_some() {
                break;
            }
        }
        self.held.arrived();
        if cut && !crowded {
            return Ok(Some(Line::Cut { head: &self.buffer, tail: &self.tail }));
        }
        if crowded || self.held.grow(tree_size(&self.buffer)).await.is_err() {
            self.drop_line();
            return Ok(Some(Line::Crowded));
        }
        let is_large = self.buffer.len() >= LARGE;
        Ok(Some(Line::Whole(if is_large {
            Cow::Owned(std::mem::take(&mut self.buffer))
        } else {
            Cow::Borrowed(&self.buffer)
        })))
    }

    /// The memory of the last line and of what it is read into, for as long as that is kept.
    pub fn take_memory(&mut self) -> HeldMemory {
        std::mem::replace(&mut self.held, HeldMemory::of_process(KEPT))
    }

    fn drop_line(&mut self) {
        self.buffer = Vec::new();
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn check(text: &str, expected: &[&str]) {
        for capacity in [1, 2, 64] {
            let mut lines = Lines::new(BufReader::with_capacity(capacity, text.as_bytes()), 4);
            let mut found = Vec::new();
            while let Some(line) = lines.next().await.unwrap() {
                found.push(match line {
                    Line::Whole(line) => String::from_utf8(line.into_owned()).unwrap(),
                    Line::Cut { head, tail } => {
                        let text = |bytes| str::from_utf8(bytes).unwrap();
                        format!("{}…{}", text(head), text(tail))
                    }
                    Line::Crowded => panic!("there is memory for so little"),
                });
            }
            assert_eq!(found, expected, "{text:?} by {capacity}");
        }
    }

    #[tokio::test]
    async fn lines_are_cut_at_their_bound() {
        check("", &[]).await;
        check("a\nbc\n", &["a", "bc"]).await;
        check("a\n\nb", &["a", "", "b"]).await;
        check("1234\n12345\n123456789\nb\n", &["1234", "1234…5", "1234…56789", "b"]).await;
        check("123456789", &["1234…56789"]).await;
    }

    #[tokio::test]
    async fn a_long_line_does_not_grow_memory() {
        let text = "x".repeat(1 << 20);
        let mut lines = Lines::new(text.as_bytes(), 100);
        assert_eq!(
            lines.next().await.unwrap(),
            Some(Line::Cut { head: &[b'x'; 100], tail: &[b'x'; TAIL] })
        );
        assert!(lines.buffer.capacity() < 1000);
    }

    proptest::proptest! {
        #[test]
        fn what_is_kept_of_any_stream_is_bounded(
            pieces in proptest::collection::vec((0_u8..4, 0_usize..3000), 0..40),
            most in 0_usize..2000,
            capacity in 1_usize..4000,
        ) {
            // Lines of all lengths, empty ones among them.
            let text: Vec<u8> = pieces.iter().flat_map(|(kind, length)| {
                let byte = if *kind == 0 { b'\n' } else { b'[' };
                std::iter::repeat_n(byte, *length % if *kind == 0 { 3 } else { 3000 })
            }).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let mut lines = Lines::new(BufReader::with_capacity(capacity, &*text), most);
                while let Some(line) = lines.next().await.unwrap() {
                    let kept = match line {
                        Line::Whole(line) => line.len(),
                        Line::Cut { head, tail } => head.len() + tail.len().saturating_sub(TAIL),
                        Line::Crowded => 0,
                    };
                    assert!(kept <= most);
                    assert!(lines.buffer.capacity() <= KEPT.max(2 * most));
                }
            });
        }
    }
}
