//! Files by name, and `-` for standard input or output. Nothing is overwritten unasked.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use chio_core::registry::ErrorCode;
use chio_core::strict::{self, StrictError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use uuid::Uuid;

use crate::io::Io;
use crate::outcome::Refused;
use crate::strict_input;
use crate::text;

/// The largest input that is read, in bytes.
const MAX_INPUT: u64 = 16 << 20;

/// Hex digits in a seed.
const SEED_DIGITS: usize = 64;

/// Where a command writes what it made.
#[derive(Debug, clap::Args)]
pub(crate) struct Out {
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Print JSON, also about what was written to a file
    #[arg(long)]
    json: bool,
}

impl Out {
    /// Writes a document; to standard output alone, or to a file with a word about it.
    pub(crate) fn write<T: Serialize>(
        &self,
        io: &mut Io<'_>,
        document: &T,
        name: (&str, &str),
    ) -> Result<()> {
        let Some(path) = self.out.as_deref().filter(|path| !is_dash(path)) else {
            return io.json(document);
        };
        io.write_file(path, text::json(document)?.as_bytes(), Access::Ordinary, self.force)?;
        self.tell(io, name, path)
    }

    /// Says what was written, and where.
    fn tell(&self, io: &mut Io<'_>, name: (&str, &str), path: &Path) -> Result<()> {
        if self.json {
            let (kind, file) = (name.0.replace(' ', "_"), path.display().to_string());
            return io.json(&json!({(kind): name.1, "written_to": file}));
        }
        io.field(name.0, name.1)?;
        io.field("written to", path.display())
    }

    /// Whether it is written to a file, so that there is room for words.
    pub(crate) fn has_room_for_words(&self) -> bool {
        !self.json && self.out.as_deref().is_some_and(|path| !is_dash(path))
    }

    /// As [`Self::write`], of a document that is written piece by piece. A file that is not finished
    /// is removed.
    pub(crate) fn write_pieces(
        &self,
        io: &mut Io<'_>,
        name: (&str, &str),
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let Some(path) = self.out.as_deref().filter(|path| !is_dash(path)) else {
            return write(io.output);
        };
        let target = io.folder.join(path);
        if !self.force && fs::symlink_metadata(&target).is_ok() {
            return Err(exists(path));
        }
        let beside = beside(&target).with_context(|| format!("cannot write {}", shown(path)))?;
        let written = write_beside(&beside, write).and_then(|()| {
            // Without force, a file that has come meanwhile is kept.
            let place = if self.force { fs::rename } else { fs::hard_link };
            Ok(place(&beside, &target)?)
        });
        let _ = fs::remove_file(&beside);
        written.with_context(|| format!("cannot write {}", shown(path)))?;
        self.tell(io, name, path)
    }
}

/// The mode of a file that others than its owner can change.
pub(crate) const CHANGEABLE: u32 = 0o022;
/// The mode of a file that others than its owner can read.
pub(crate) const READABLE: u32 = 0o055;

/// Who may read a file that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Its owner.
    Private,
    /// All whom the system lets.
    Ordinary,
}

impl Io<'_> {
    /// Reads a whole file, or standard input for `-`.
    pub(crate) fn read(&mut self, path: &Path) -> Result<Vec<u8>> {
        self.read_at_most(path, MAX_INPUT)
    }

    /// Reads a whole file of at most this many bytes, or standard input for `-`.
    pub(crate) fn read_at_most(&mut self, path: &Path, most: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let source: &mut dyn Read =
            if is_dash(path) { self.standard_input()? } else { &mut self.open(path)? };
        // One byte more than allowed, to see that there is more.
        let read = source.take(most + 1).read_to_end(&mut bytes);
        let size = read.with_context(|| format!("cannot read {}", shown(path)))?;
        if u64::try_from(size).is_ok_and(|size| size <= most) {
            return Ok(bytes);
        }
        let message = format!("expected at most {} MiB in {}, found more", most >> 20, shown(path));
        Err(Refused::with_code(message, ErrorCode::InvalidRequestShape).into())
    }

    /// Reads a `T`, `what` in words. Members that a `T` does not have are left out.
    pub(crate) fn read_json<T: DeserializeOwned>(&mut self, path: &Path, what: &str) -> Result<T> {
        strict::object_from_slice(&self.read(path)?)
            .map_err(|error| unreadable(what, &error).into())
    }

    /// Reads a `T` that is about to be signed: members that a `T` does not have are refused.
    pub(crate) fn read_exact_json<T>(&mut self, path: &Path, what: &str) -> Result<T>
    where
        T: DeserializeOwned + Serialize,
    {
        strict_input::from_slice(&self.read(path)?).map_err(|error| unreadable(what, &error).into())
    }

    /// Opens a file to read it.
    pub(crate) fn open(&self, path: &Path) -> Result<File> {
        self.own.protect(&self.folder.join(path), false);
        File::open(self.folder.join(path)).with_context(|| format!("cannot read {}", shown(path)))
    }

    /// Opens a file with a secret. Says so when others than its owner can read it.
    ///
    /// # Errors
    /// When others can change it, too.
    pub(crate) fn open_secret(&mut self, path: &Path) -> Result<File> {
        let file = self.open(path)?;
        let found = file.metadata().with_context(|| format!("cannot read {}", shown(path)))?;
        // What is no file, such as a pipe, has nothing to be changed.
        let mode = if found.is_file() { found.permissions().mode() } else { 0 };
        let path = shown(path);
        if mode & CHANGEABLE != 0 {
            bail!(
                "expected a file that only its owner can change, found {path}: run `chmod 600` on it"
            );
        }
        if mode & READABLE != 0 {
            let problem = "can be read by others than its owner: run `chmod 600` on it";
            self.complain("warning", format_args!("{path} {problem}"));
        }
        Ok(file)
    }

    /// Standard input, once.
    pub(crate) fn standard_input(&mut self) -> Result<&mut dyn Read> {
        match self.input.take() {
            Some(input) => Ok(input),
            None => bail!("standard input is read already: only one argument can be `-`"),
        }
    }

    /// Makes a file. One that exists is replaced as a whole when told to, and otherwise kept.
    pub(crate) fn write_file(
        &self,
        path: &Path,
        content: &[u8],
        access: Access,
        replace: bool,
    ) -> Result<()> {
        let target = self.folder.join(path);
        let written = if replace {
            rewrite(&target, content, access, |_| Ok(()))
        } else {
            write(&target, content, access)
        };
        match written {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(exists(path)),
            written => written.map(drop).with_context(|| format!("cannot write {}", shown(path))),
        }
    }

    /// Replaces a file that only its owner can read, right after `before`. From its first moment on
    /// it is locked, until what is returned is dropped.
    pub(crate) fn write_locked(
        &self,
        path: &Path,
        content: &[u8],
        before: impl FnOnce() -> Result<()>,
    ) -> Result<File> {
        let mut refused = None;
        let ready = |file: &File| {
            file.lock()?;
            before().map_err(|error| {
                refused = Some(error);
                io::Error::from(ErrorKind::Other)
            })
        };
        let written = rewrite(&self.folder.join(path), content, Access::Private, ready);
        match refused {
            Some(error) => Err(error),
            None => written.with_context(|| format!("cannot write {}", shown(path))),
        }
    }
}

fn exists(path: &Path) -> anyhow::Error {
    let shown = shown(path);
    anyhow!("{shown} exists already: choose another name, or pass --force to replace it")
}

/// The refusal of a text that is not `what` it should be.
pub(crate) fn unreadable(what: &str, error: &StrictError) -> Refused {
    let message = format!("this is not {what}: {error}");
    Refused::with_code(message, ErrorCode::InvalidRequestShape)
}

/// Whether the path means standard input or output.
pub(crate) fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

/// A path for a message. A caller who gives a seed in place of a key file does not see it again.
pub(crate) fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_seed = |part: &str| part.len() >= SEED_DIGITS;
    if is_dash(path) {
        "standard input".to_owned()
    } else if text.split(|c: char| !c.is_ascii_hexdigit()).any(is_seed) {
        "a file named by 64 hex digits (not repeated, in case they are a key)".to_owned()
    } else {
        format!("`{text}`")
    }
}

/// Makes a file that did not exist.
fn write(path: &Path, content: &[u8], access: Access) -> io::Result<File> {
    let mut file = create(path, access)?;
    let written = settle_mode(&file, access)
        .and_then(|()| file.write_all(content))
        .and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a key is worse than none.
        let _ = fs::remove_file(path);
    }
    written.map(|()| file)
}

/// Gives a private file its mode whatever the umask took away.
fn settle_mode(file: &File, access: Access) -> io::Result<()> {
    #[cfg(unix)]
    if matches!(access, Access::Private) {
        return file.set_permissions(fs::Permissions::from_mode(0o600));
    }
    let _ = (file, access);
    Ok(())
}

/// Puts a new file, which was made `ready`, in the place of another: at each moment there is the old
/// or the new. What is no file (a device, a pipe, a folder, a link) is left alone.
fn rewrite(
    path: &Path,
    content: &[u8],
    access: Access,
    ready: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<File> {
    let beside = beside(path)?;
    let file = write(&beside, content, access)?;
    let renamed = ready(&file).and_then(|()| fs::rename(&beside, path));
    if renamed.is_err() {
        let _ = fs::remove_file(&beside);
    }
    renamed.map(|()| file)
}

fn write_beside(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut file = BufWriter::new(create(path, Access::Ordinary)?);
    write(&mut file)?;
    file.flush()?;
    Ok(file.get_ref().sync_all()?)
}

/// A new file's path beside this one, which it may replace.
fn beside(path: &Path) -> io::Result<PathBuf> {
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not an ordinary file"));
    }
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or(ErrorKind::InvalidInput)?);
    name.push(format!(".{}", Uuid::now_v7()));
    Ok(path.with_file_name(name))
}

/// Creates a file that did not exist. It never has more readers than it should, not even empty.
fn create(path: &Path, access: Access) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(
        &mut options,
        match access {
            Access::Private => 0o600,
            Access::Ordinary => 0o666,
        },
    );
    #[cfg(not(unix))]
    let _ = access;
    options.open(path)
}
