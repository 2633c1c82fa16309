//! Whether a data directory is ours to use: this program made it, and no other user knows or changes
//! its keys.

use std::fs::{self, DirEntry, Metadata};
use std::io::{BufRead as _, BufReader, IsTerminal as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::process::geteuid;

use crate::files::{CHANGEABLE, READABLE};
use crate::io::Io;

/// What is in every data directory of a store, or is a store itself.
const MARKS: [&str; 2] = ["store.id", "store.db"];
/// How the names begin of what may be in a data directory without a store: that of a store in memory,
/// or what is left of a first start that was cut off.
const LOCAL: [&str; 9] =
    ["kernels", "notes", "demo", "endpoint.json", "mcp.token", "tasks-", "store.", "index.", "."];
/// Files that hold secrets, besides the keys of kernels.
pub(crate) const SECRETS: [&str; 4] =
    ["authority.key", "approver.key", "mcp.token", "demo/agent.key"];

/// Whether a data directory of another origin is used.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct AdoptArgs {
    /// Use the data directory although this program did not make it, or not for this user
    #[arg(long)]
    pub(crate) adopt: bool,
}

/// Refuses a data directory that others can change, or that was not made here unless it is to be
/// adopted. `may_ask` says whether standard input is the operator's.
pub(crate) fn check(io: &mut Io<'_>, data: &Path, adopt: bool, may_ask: bool) -> Result<()> {
    // What is no folder is refused where the store is opened.
    let Some(folder) = folder_at(data) else { return Ok(()) };
    let shown = data.display();
    if let Some(reason) = foreign(data)? {
        let asked = may_ask && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let wanted = adopt || asked && confirms(io, data, &reason)?;
        if !wanted {
            bail!(
                "expected a data directory that this program made for this user, found {shown}: \
                 {reason}; pass --adopt to use it with the keys that are in it"
            );
        }
        if folder.uid() == geteuid().as_raw() {
            let private = fs::Permissions::from_mode(0o700);
            fs::set_permissions(data, private)
                .with_context(|| format!("cannot close {shown} to others"))?;
        }
    } else if is_open(&folder, CHANGEABLE) {
        bail!(
            "expected a data directory that only its owner can change, found {shown}: run `chmod 700` on it"
        );
    }
    for secret in secrets(data).iter().filter(|secret| secret.exists()) {
        io.open_secret(secret)?;
    }
    Ok(())
}

/// Why a data directory is not one that this program made for this user; none where it is.
pub(crate) fn foreign(data: &Path) -> Result<Option<String>> {
    let Some(folder) = folder_at(data) else { return Ok(None) };
    let (owner, user) = (folder.uid(), geteuid().as_raw());
    if owner != user {
        return Ok(Some(format!("it belongs to the user {owner}, and this is {user}")));
    }
    let listed = fs::read_dir(data).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let entries = listed.with_context(|| format!("cannot list {}", data.display()))?;
    if !MARKS.iter().any(|mark| data.join(mark).exists())
        && let Some(other) = entries.iter().find(|entry| !is_local(entry))
    {
        let other = other.file_name();
        return Ok(Some(format!("it has no store, but `{}`", other.display())));
    }
    // What this program makes is its owner's alone. An archive or a checkout does not keep that.
    let is_shared = |secret: &PathBuf| {
        fs::metadata(secret).is_ok_and(|found| is_open(&found, CHANGEABLE | READABLE))
    };
    let unpacked = is_open(&folder, READABLE) && secrets(data).iter().any(is_shared);
    Ok(unpacked.then(|| "others can read it and its keys, as if it came from elsewhere".to_owned()))
}

fn folder_at(path: &Path) -> Option<Metadata> {
    fs::metadata(path).ok().filter(Metadata::is_dir)
}

fn is_local(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let begins = |own: &&str| name.as_encoded_bytes().starts_with(own.as_bytes());
    LOCAL.iter().any(begins) || entry.file_type().is_ok_and(|kind| kind.is_socket())
}

/// The files with secrets in a data directory.
fn secrets(data: &Path) -> Vec<PathBuf> {
    let slots = fs::read_dir(data.join("kernels")).into_iter().flatten().flatten();
    let keys = slots.map(|slot| slot.path().join("key"));
    SECRETS.iter().map(|name| data.join(name)).chain(keys).collect()
}

fn is_open(found: &Metadata, bits: u32) -> bool {
    found.mode() & bits != 0
}

/// Asks the operator.
fn confirms(io: &mut Io<'_>, data: &Path, reason: &str) -> Result<bool> {
    let shown = data.display();
    io.complain("question", format_args!("{shown} was not made here: {reason}. Use it? [y/N]"));
    let mut answer = String::new();
    BufReader::new(io.standard_input()?).read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
