//! A client's own file with a server of ours in it, and without.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use super::client::{Client, NOT_CHANGED};
use crate::files::{Access, shown};
use crate::io::Io;
use crate::outcome::Refused;

/// What the name of the file ends with, behind the server's, that keeps how it was before that server
/// was replaced.
const BEFORE: &str = ".before-chio";
/// The largest file that is changed, in bytes.
const MOST: u64 = 16 << 20;

/// What was changed.
pub(super) struct Done {
    file: PathBuf,
    server: String,
    /// What became of the server.
    what: &'static str,
    /// The file that keeps how it was before.
    before: Option<PathBuf>,
}

impl Done {
    /// Says so.
    pub(super) fn tell(&self, io: &mut Io<'_>, as_json: bool) -> Result<()> {
        let Self { file, server, what, before } = self;
        let before = before.as_ref().map(|before| before.display().to_string());
        if as_json {
            let file = file.display().to_string();
            return io
                .json(&json!({"file": file, "server": server, "now": what, "before": before}));
        }
        io.field("written to", file.display())?;
        io.field("server", format_args!("{server}, {what}"))?;
        before.map_or(Ok(()), |before| io.field("before", before))
    }
}

/// Puts a server into a file, or in the place of the one of its name.
pub(super) fn write(
    io: &mut Io<'_>,
    client: Client,
    file: &Path,
    (name, server): (&str, &Value),
) -> Result<Done> {
    let text = read(file)?.unwrap_or_default();
    let there = find(client, &text, name)?;
    // What is ours already needs no keeping.
    let replaced = there.is_some_and(|there| !is_ours(there));
    let changed = client.with(&text, name, server)?;
    if replaced {
        let kept = kept(file, name);
        if kept.exists() {
            bail!(
                "{} keeps how the file was before an earlier change: look at it, and remove it",
                shown(&kept)
            );
        }
        io.write_file(&kept, text.as_bytes(), Access::Private, false)?;
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", shown(folder)))?;
    }
    put(io, file, &changed)?;
    let before = replaced.then(|| kept(file, name));
    Ok(Done { file: file.to_owned(), server: name.to_owned(), what: "starts through chio", before })
}

/// Takes a server out of a file, and puts back the one that it replaced.
pub(super) fn undo(io: &mut Io<'_>, client: Client, file: &Path, name: &str) -> Result<Done> {
    let text = read(file)?.ok_or_else(|| anyhow!("there is no {}", shown(file)))?;
    let there = find(client, &text, name)?;
    if !there.is_some_and(is_ours) {
        let problem = format!("{} has no server `{name}` that starts through chio", shown(file));
        return Err(Refused::new(problem).into());
    }
    let before = read(&kept(file, name))?;
    let before_text = before.as_deref().unwrap_or_default();
    let replaced = find(client, before_text, name)?;
    let changed = match replaced {
        Some(written) => client.put_back(&text, name, written),
        None => client.without(&text, name),
    };
    put(io, file, &changed.map_err(anyhow::Error::msg).context(NOT_CHANGED)?)?;
    if replaced.is_some() {
        fs::remove_file(kept(file, name))
            .with_context(|| format!("cannot remove {}", shown(&kept(file, name))))?;
    }
    let what = if replaced.is_some() { "as it was before" } else { "taken out" };
    Ok(Done { file: file.to_owned(), server: name.to_owned(), what, before: None })
}

/// A file as a whole, in place of the one that is there.
fn put(io: &Io<'_>, file: &Path, text: &str) -> Result<()> {
    // A link to a file of its owner's dotfiles stays one.
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    // It may hold tokens, and stays as open as it was.
    let found = fs::metadata(&target).ok().map(|found| found.permissions());
    if found.as_ref().is_some_and(fs::Permissions::readonly) {
        bail!("expected {} to be writable, found it read-only", shown(&target));
    }
    let access = if found.is_some() { Access::Private } else { Access::Ordinary };
    io.write_file(&target, text.as_bytes(), access, true)?;
    let set = found.map_or(Ok(()), |found| fs::set_permissions(&target, found));
    set.with_context(|| format!("cannot keep the mode of {}", shown(&target)))
}

fn find<'a>(client: Client, text: &'a str, name: &str) -> Result<Option<&'a str>> {
    client.find(text, name).map_err(anyhow::Error::msg).context(NOT_CHANGED)
}

/// Whether a server, as it is written, starts through this program.
fn is_ours(written: &str) -> bool {
    let words: String = written.chars().filter(|c| !c.is_whitespace()).collect();
    words.contains("[\"mcp\",\"serve\",\"--data\"")
}

fn kept(file: &Path, server: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let mut kept = OsString::from(file);
    kept.push(format!(".{}{BEFORE}", server.chars().map(plain).collect::<String>()));
    kept.into()
}

/// The text of a file; none where there is none.
fn read(file: &Path) -> Result<Option<String>> {
    let found = match fs::metadata(file) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", shown(file))),
    };
    if found.len() > MOST {
        bail!("expected at most {} MiB in {}, found more", MOST >> 20, shown(file));
    }
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", shown(file)))?;
    Ok(Some(text))
}
