//! Tasks in a file: whole at every moment, and shared by every adapter that names it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use chio_core::crypto::random_bytes;
use chio_core::strict;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::Rows;
use crate::error::AgentError;

/// What the file says it is.
const VERSION: &str = "chio.a2a-task-registry.v1";
/// The most bytes that are read of it.
const MAX_BYTES: u64 = 32 << 20;
/// Only the owner may read it: ids of tasks are half of what is needed to ask for them.
const PRIVATE: u32 = 0o600;

/// Tasks in a file.
#[derive(Debug)]
pub(super) struct RegistryFile {
    path: PathBuf,
    /// What was read last, and of which file.
    last: Mutex<Option<(Stamp, Arc<Rows>)>>,
}

/// By which a file is known to be the same: every change makes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    node: u64,
}

#[derive(Serialize, Deserialize)]
struct Content<R> {
    version: String,
    tasks: R,
}

impl RegistryFile {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, last: Mutex::new(None) }
    }

    /// What is in the file; nothing when there is none.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    pub(super) fn read(&self) -> Result<Arc<Rows>, AgentError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(error) => return Err(unusable("read", &error)),
        };
        let stamp = stamp(&file).map_err(|error| unusable("read", &error))?;
        let mut last = self.last.lock();
        if let Some((known, rows)) = &*last
            && *known == stamp
        {
            return Ok(Arc::clone(rows));
        }
        let rows = Arc::new(parse(file)?);
        *last = Some((stamp, Arc::clone(&rows)));
        Ok(rows)
    }

    /// Changes what is in the file, after every earlier change and before the next.
    ///
    /// # Errors
    /// When the change is refused, or cannot be made.
    pub(super) fn change(
        &self,
        change: impl FnOnce(&mut Rows) -> Result<(), AgentError>,
    ) -> Result<(), AgentError> {
        let lock = self.lock().map_err(|error| unusable("locked", &error))?;
        let mut rows = (*self.read()?).clone();
        change(&mut rows)?;
        let content = Content { version: VERSION.to_owned(), tasks: &rows };
        let text = serde_json::to_vec_pretty(&content)
            .map_err(|_| AgentError::Lifecycle("the registry has no form".to_owned()))?;
        self.replace(&text).map_err(|error| unusable("written", &error))?;
        drop(lock);
        Ok(())
    }

    /// Waits until no adapter changes the file. The lock ends with the file that it is on, which
    /// is never replaced.
    fn lock(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(PRIVATE);
        let file = options.open(self.beside(".lock")?)?;
        file.lock()?;
        Ok(file)
    }

    fn beside(&self, ending: &str) -> io::Result<PathBuf> {
        let mut name = OsString::from(".");
        name.push(self.path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
        name.push(ending);
        Ok(self.path.with_file_name(name))
    }

    /// Puts a new file in the place of the old one: at each moment there is one of them, whole.
    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let number = u64::from_le_bytes(random_bytes());
        let draft = self.beside(&format!(".{number:016x}"))?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(PRIVATE).open(&draft)?;
        let written = file
            .write_all(text)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&draft, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written.and_then(|()| sync_folder(&self.path))
    }
}

/// Makes the new name durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

fn stamp(file: &File) -> io::Result<Stamp> {
    let metadata = file.metadata()?;
    let (length, modified) = (metadata.len(), metadata.modified().ok());
    Ok(Stamp { length, modified, node: metadata.ino() })
}

fn parse(file: File) -> Result<Rows, AgentError> {
    let mut text = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut text);
    read.map_err(|error| unusable("read", &error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(damaged(&format!("expected at most {MAX_BYTES} bytes, found more")));
    }
    let content: Content<Rows> =
        strict::object_from_slice(&text).map_err(|error| damaged(&error.to_string()))?;
    if content.version != VERSION {
        return Err(damaged(&format!("expected version `{VERSION}`, found another")));
    }
    if content.tasks.iter().any(|(id, row)| *id != row.task_id) {
        return Err(damaged("expected each task under its own id, found one under another"));
    }
    Ok(content.tasks)
}

// SECURITY: a damaged registry is no empty one; what it bound must not become free.
fn damaged(problem: &str) -> AgentError {
    AgentError::Lifecycle(format!("the task registry cannot be understood: {problem}"))
}

fn unusable(what: &str, error: &io::Error) -> AgentError {
    AgentError::Lifecycle(format!("the task registry cannot be {what}: {}", error.kind()))
}
