//! What a command may touch: its input, its output, its folder and the time.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use chio_policy::own::Own;
use serde::Serialize;

use crate::look::Look;
use crate::text;

/// Columns of the names in front of values.
const NAME_WIDTH: usize = 12;

/// Everything that a command has from outside.
pub(crate) struct Io<'a> {
    /// Standard input, until it is read.
    pub(crate) input: Option<&'a mut dyn Read>,
    /// Standard output.
    pub(crate) output: &'a mut dyn Write,
    /// Standard error.
    pub(crate) errors: &'a mut dyn Write,
    /// Where relative paths begin.
    pub(crate) folder: &'a Path,
    /// Now, in Unix seconds.
    pub(crate) now: u64,
    /// What no governed call may touch: among others, every file that the command reads.
    pub(crate) own: Arc<Own>,
    /// How lines look on standard output.
    pub(crate) look: Look,
}

impl Io<'_> {
    /// Writes a line to standard output. What could steer a terminal is shown, not sent.
    pub(crate) fn say(&mut self, line: impl Display) -> Result<()> {
        let line = line.to_string();
        writeln!(self.output, "{}", text::plain(line.trim_end())).context(NO_OUTPUT)
    }

    /// Writes a line with a word in the colour of what it tells.
    pub(crate) fn say_verdict(&mut self, before: &str, verdict: &str, after: &str) -> Result<()> {
        if !self.look.has_colour {
            return self.say(format_args!("{before}{verdict}{after}"));
        }
        let painted = self.look.painted(&text::plain(verdict));
        let (before, after) = (text::plain(before), text::plain(after.trim_end()));
        writeln!(self.output, "{before}{painted}{after}").context(NO_OUTPUT)
    }

    /// Writes the result of a check, in the colour of what it tells.
    pub(crate) fn result(&mut self, verdict: &str, more: &str) -> Result<()> {
        self.say_verdict(&format!("{:NAME_WIDTH$}", "result"), verdict, more)
    }

    /// Writes a name and its value to standard output, values one below the other.
    /// Running text goes on in the next line where there is no more room.
    pub(crate) fn field(&mut self, name: &str, value: impl Display) -> Result<()> {
        let value = value.to_string();
        let (room, is_indented) = (self.look.width - NAME_WIDTH, value.starts_with(' '));
        if is_indented || value.chars().count() <= room || value.contains('\n') {
            return self.say(format_args!("{name:NAME_WIDTH$}{value}"));
        }
        let names = std::iter::once(name).chain(std::iter::repeat(""));
        let mut lines = names.zip(text::wrapped(&value, room));
        lines.try_for_each(|(name, line)| self.say(format_args!("{name:NAME_WIDTH$}{line}")))
    }

    /// Writes a name and its values, a line each.
    pub(crate) fn list(
        &mut self,
        name: &str,
        lines: impl IntoIterator<Item = impl Display>,
    ) -> Result<()> {
        let names = std::iter::once(name).chain(std::iter::repeat(""));
        names.zip(lines).try_for_each(|(name, line)| self.field(name, line))
    }

    /// Writes a JSON document to standard output.
    pub(crate) fn json<T: Serialize>(&mut self, document: &T) -> Result<()> {
        self.bytes(text::json(document)?.as_bytes())
    }

    /// Writes bytes to standard output as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).context(NO_OUTPUT)
    }

    /// Writes a line to standard error. If even that fails, there is no way to tell.
    pub(crate) fn complain(&mut self, kind: &str, line: impl Display) {
        let line = line.to_string();
        let _ = writeln!(self.errors, "{kind}: {}", text::plain(&line));
    }

    /// Writes a line to standard error that begins with a place of its own, such as `file:1:1:`.
    pub(crate) fn complain_at(&mut self, line: impl Display) {
        let line = line.to_string();
        let _ = writeln!(self.errors, "{}", text::plain(&line));
    }

    /// Writes out what is still held back.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.output.flush().context(NO_OUTPUT)
    }
}

#[cfg(test)]
impl<'a> Io<'a> {
    /// Without input, at the beginning of time.
    pub(crate) fn for_tests(
        output: &'a mut dyn Write,
        errors: &'a mut dyn Write,
        folder: &'a Path,
    ) -> Self {
        let (own, look) = (Arc::default(), Look::default());
        Self { input: None, output, errors, folder, now: 0, own, look }
    }
}

const NO_OUTPUT: &str = "cannot write to standard output";

/// A writer that goes on when its reader has gone (`| head`): the exit code still counts.
pub(crate) struct Patient<W>(pub(crate) W);

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }
}
