//! Notes: in memory, or in one file to which each put appends a line.
//!
//! A put has happened when its line is on the disk, so that the lines of the file are the puts
//! that happened. Several processes may share the file.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

/// How many notes there may be.
pub const MAX_NOTES: usize = 1000;
/// How large the file may become, in bytes.
pub const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The name of the file.
const FILE: &str = "notes.jsonl";

/// Why a note was not kept or found.
#[derive(Debug)]
pub(crate) enum NoteError {
    Unknown,
    Full,
    Io(io::Error),
}

impl NoteError {
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Unknown => "there is no note of this name".to_owned(),
            Self::Full => "the notebook is full".to_owned(),
            // Only the kind: the caller must not learn paths.
            Self::Io(error) => format!("the notebook cannot be used: {}", error.kind()),
        }
    }
}

impl From<io::Error> for NoteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    name: String,
    text: String,
}

/// Notes by name.
pub(crate) struct Notebook(Mutex<Pages>);

struct Pages {
    notes: HashMap<String, String>,
    puts: u64,
    file: Option<Lines>,
}

struct Lines {
    file: File,
    /// How much of the file is in the notes.
    read: u64,
}

/// How many notes there are, and how often one was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) notes: usize,
    pub(crate) puts: u64,
}

impl Notebook {
    /// A notebook in memory, or in this folder, which is made if it is not there.
    pub(crate) fn open(folder: Option<&Path>) -> io::Result<Self> {
        let file = folder.map(open_lines).transpose()?;
        Ok(Self(Mutex::new(Pages { notes: HashMap::new(), puts: 0, file })))
    }

    /// Keeps a note; tells how often one was put.
    pub(crate) fn put(&self, name: String, text: String) -> Result<u64, NoteError> {
        self.with(|pages| {
            if pages.notes.len() >= MAX_NOTES && !pages.notes.contains_key(&name) {
                return Err(NoteError::Full);
            }
            let line = Line { name, text };
            pages.file.as_mut().map_or(Ok(()), |lines| lines.append(&line))?;
            pages.notes.insert(line.name, line.text);
            pages.puts += 1;
            Ok(pages.puts)
        })
    }

    /// The note of this name.
    pub(crate) fn get(&self, name: &str) -> Result<String, NoteError> {
        self.with(|pages| pages.notes.get(name).cloned().ok_or(NoteError::Unknown))
    }

    pub(crate) fn counts(&self) -> Result<Counts, NoteError> {
        self.with(|pages| Ok(Counts { notes: pages.notes.len(), puts: pages.puts }))
    }

    /// Does something with all that any process has put so far, while no other puts.
    fn with<T>(
        &self,
        act: impl FnOnce(&mut Pages) -> Result<T, NoteError>,
    ) -> Result<T, NoteError> {
        let mut pages: MutexGuard<'_, Pages> = self.0.lock();
        let Some(lines) = &pages.file else { return act(&mut pages) };
        lines.file.lock()?;
        let outcome = pages.catch_up().and_then(|()| act(&mut pages));
        if let Some(lines) = &pages.file {
            lines.file.unlock()?;
        }
        outcome
    }
}

impl Pages {
    /// Reads what was appended since, and cuts off a line that a crash has left unfinished.
    fn catch_up(&mut self) -> Result<(), NoteError> {
        let Some(lines) = &mut self.file else { return Ok(()) };
        let mut rest = Vec::new();
        lines.file.seek(SeekFrom::Start(lines.read))?;
        (&lines.file).take(MAX_FILE).read_to_end(&mut rest)?;
        let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole_lines = rest.get(..whole).unwrap_or_default();
        let read: Vec<Line> = whole_lines
            .split_inclusive(|byte| *byte == b'\n')
            .map(serde_json::from_slice)
            .collect::<Result<_, _>>()
            .map_err(io::Error::from)?;
        self.puts += u64::try_from(read.len()).unwrap_or(u64::MAX);
        self.notes.extend(read.into_iter().map(|line| (line.name, line.text)));
        lines.read += u64::try_from(whole).unwrap_or(u64::MAX);
        if whole < rest.len() {
            lines.file.set_len(lines.read)?;
        }
        Ok(())
    }
}

impl Lines {
    /// Appends a line and waits until it is on the disk.
    fn append(&mut self, line: &Line) -> Result<(), NoteError> {
        let mut bytes = serde_json::to_vec(line).map_err(io::Error::from)?;
        bytes.push(b'\n');
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.read.saturating_add(length) > MAX_FILE {
            return Err(NoteError::Full);
        }
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
        if written.is_err() {
            // What may have been written does not count.
            self.file.set_len(self.read)?;
        }
        written?;
        self.read += length;
        Ok(())
    }
}

fn open_lines(folder: &Path) -> io::Result<Lines> {
    DirBuilder::new().mode(0o700).recursive(true).create(folder)?;
    let mut options = OpenOptions::new();
    options.mode(0o600).read(true).append(true).create(true);
    let file = options.open(folder.join(FILE))?;
    Ok(Lines { file, read: 0 })
}

#[cfg(test)]
mod tests;
