//! Lines of a stream, each within a limit of bytes.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// What is kept of a buffer between two lines.
const KEPT: usize = 64 * 1024;

/// A line of a stream, without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// The beginning of one that is longer than the limit. The rest was read and dropped.
    Cut(&'a [u8]),
}

/// Reads lines within a limit.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    most: usize,
    buffer: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Lines of at most `most` bytes each.
    pub const fn new(reader: R, most: usize) -> Self {
        Self { reader, most, buffer: Vec::new() }
    }

    /// The next line; none at the end of the stream.
    ///
    /// # Errors
    /// When the stream fails.
    pub async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT);
        let (mut cut, mut begun) = (false, false);
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                if !begun {
                    return Ok(None);
                }
                break;
            }
            begun = true;
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            let room = self.most.saturating_sub(self.buffer.len());
            cut |= part.len() > room;
            self.buffer.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        Ok(Some(if cut { Line::Cut(&self.buffer) } else { Line::Whole(&self.buffer) }))
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
                    Line::Whole(line) => String::from_utf8(line.to_vec()).unwrap(),
                    Line::Cut(line) => format!("{}…", str::from_utf8(line).unwrap()),
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
        check("1234\n12345\n123456789\nb\n", &["1234", "1234…", "1234…", "b"]).await;
        check("123456789", &["1234…"]).await;
    }

    #[tokio::test]
    async fn a_long_line_does_not_grow_memory() {
        let text = "x".repeat(1 << 20);
        let mut lines = Lines::new(text.as_bytes(), 100);
        assert_eq!(lines.next().await.unwrap(), Some(Line::Cut(&[b'x'; 100])));
        assert!(lines.buffer.capacity() < 1000);
    }
}
