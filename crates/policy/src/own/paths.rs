//! Whether a path is one of Chio's own: by its name, and by what the file system says.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::Known;
use crate::facts::glob::matches_name;

/// How many links in a row are followed that lead to nothing.
const MAX_LINKS: usize = 16;
/// How many files of a folder of ours a hard link is compared with.
const MAX_FILES: usize = 1 << 16;
/// The names of our files that a pattern may be meant to find.
const INNER: [&str; 7] = [
    "authority.key",
    "approver.key",
    "key",
    "mcp.token",
    "store.db",
    "store.db-wal",
    "native.sock",
];

/// A file, or a folder with all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    path: PathBuf,
    /// The names from the root on, in lower case: as it is called, and without links.
    named: [Vec<String>; 2],
    /// What is read from it is secret; anything else of ours may be read along with other files.
    secret: bool,
}

/// What a call does with a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use {
    /// It may change what is there.
    pub(crate) writes: bool,
    /// It takes away what is there with all that is in it.
    pub(crate) removes: bool,
}

impl Place {
    pub(super) fn new(path: &Path, secret: bool) -> Self {
        let named = [names(&plain(path)), names(&real(path))];
        Self { path: path.to_owned(), named, secret }
    }

    /// Whether this says all that the other does.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.path == other.path && self.named == other.named && self.secret >= other.secret
    }
}

/// The names of an absolute path, in lower case.
fn names(path: &Path) -> Vec<String> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

/// Without `.` and `..`, by name alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// The path without links, as far as there is something at it.
fn real(path: &Path) -> PathBuf {
    let (mut path, mut links) = (path.to_owned(), 0);
    let mut missing = Vec::new();
    loop {
        if let Ok(mut real) = fs::canonicalize(&path) {
            real.extend(missing.iter().rev());
            return plain(&real);
        }
        // A link to nothing is followed: what is written to it is made there.
        match fs::read_link(&path) {
            Ok(target) if links < MAX_LINKS => {
                links += 1;
                path = path.parent().unwrap_or(Path::new("/")).join(target);
            }
            _ => match (path.parent().map(Path::to_owned), path.file_name()) {
                (Some(parent), Some(name)) => {
                    missing.push(name.to_owned());
                    path = parent;
                }
                (Some(parent), None) => {
                    missing.push("..".into());
                    path = parent;
                }
                (None, _) => return path,
            },
        }
    }
}

fn is_wild(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Whether a name of a pattern says nothing of what it finds.
fn says_nothing(name: &str) -> bool {
    name.chars().all(|c| matches!(c, '*' | '?'))
}

/// A search for a place behind a path.
struct Search {
    secret: bool,
    uses: Use,
    /// How many names were left of path and place where it led on to nothing: several `**` reach the
    /// same names in many ways.
    in_vain: BTreeSet<(usize, usize)>,
}

/// Whether a path, by its names, leads to this place or into it. The path may be a pattern.
fn leads_to(path: &[&str], place: &[String], secret: bool, uses: Use) -> bool {
    Search { secret, uses, in_vain: BTreeSet::new() }.leads(path, place)
}

impl Search {
    fn leads(&mut self, path: &[&str], place: &[String]) -> bool {
        let Some((name, below)) = place.split_first() else { return true };
        match path.split_first() {
            None => self.uses.removes,
            Some((first, _)) if is_wild(first) => {
                let left = (path.len(), place.len());
                let leads =
                    !self.in_vain.contains(&left) && self.pattern_leads(path, name, below, place);
                if !leads {
                    self.in_vain.insert(left);
                }
                leads
            }
            Some((first, rest)) => first == name && self.leads(rest, below),
        }
    }

    fn pattern_leads(
        &mut self,
        path: &[&str],
        name: &str,
        below: &[String],
        place: &[String],
    ) -> bool {
        match path.split_first() {
            None => false,
            Some((&"**", rest)) => {
                self.leads(rest, place)
                    || (self.means("**", rest, below) && self.leads(path, below))
            }
            Some((first, rest)) => {
                // A shell's `*` does not stand for a name that begins with a dot.
                let hidden = name.starts_with('.') && first.starts_with(['*', '?', '[']);
                !hidden
                    && matches_name(first, name)
                    && self.means(first, rest, below)
                    && self.leads(rest, below)
            }
        }
    }

    /// The last name of the place is meant for sure only by one that says something, or when what
    /// stands behind it is called as our files are.
    fn means(&self, pattern: &str, rest: &[&str], below: &[String]) -> bool {
        let found = rest.last().is_some_and(|last| finds_inner(last));
        !below.is_empty()
            || (rest.is_empty() && self.uses.writes)
            || (self.secret && (found || !says_nothing(pattern)))
    }
}

/// Whether a name stands for one of our secret files, and says something of it.
fn finds_inner(name: &str) -> bool {
    !says_nothing(name) && INNER.iter().any(|inner| *inner == name || matches_name(name, inner))
}

impl Known {
    /// Whether a path in its one form is one of ours, by its name. It begins in this folder if it
    /// is relative.
    pub(crate) fn names(&self, path: &str, folder: &str, uses: Use) -> bool {
        let whole = absolute(path, folder).to_lowercase();
        let mut path: Vec<&str> = Vec::new();
        for name in whole.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(path.pop()),
                name => path.push(name),
            }
        }
        // The root is above everything, and no agent takes that away or moves it.
        let leads = |named: &Vec<String>, secret| leads_to(&path, named, secret, uses);
        let is_place = |place: &Place| place.named.iter().any(|named| leads(named, place.secret));
        !path.is_empty() && self.places().any(is_place)
    }

    /// Whether a path may be one of ours by its name: the quick look.
    pub(crate) fn may_name(&self, path: &str) -> bool {
        is_wild(path) || self.mentions(path)
    }

    /// Whether a text has the name of one of ours in it.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let mut names = self.places().flat_map(|place| &place.named).filter_map(|it| it.last());
        names.any(|name| text.contains(name.as_str()))
    }

    /// Whether an absolute path may be one of ours to a tool server that sees other folders than
    /// this machine has, as in a container: some of its names lead on to it from one of these folders.
    pub(crate) fn may_be_mounted(&self, path: &str, folders: &[String]) -> bool {
        let top = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        if !self.mentions(path) || Path::new("/").join(top).exists() {
            return false;
        }
        let uses = Use { writes: false, removes: false };
        let mut below = path.trim_start_matches('/').split_once('/');
        while let Some((_, rest)) = below {
            if folders.iter().any(|folder| self.names(rest, folder, uses)) {
                return true;
            }
            below = rest.split_once('/');
        }
        false
    }

    /// Whether a path is one of ours by another name, as the file system has it. Reads it.
    pub(crate) fn is_linked(&self, whole: &str) -> bool {
        // What is behind a pattern is not known; what is before it is.
        let end = whole.find(['*', '?', '[']).unwrap_or(whole.len());
        let end = if end < whole.len() {
            whole.get(..end).and_then(|it| it.rfind('/'))
        } else {
            Some(end)
        };
        let path = Path::new(end.and_then(|end| whole.get(..end)).unwrap_or("/"));
        // Each process has its own.
        if path.starts_with("/proc/self") || path.starts_with("/proc/thread-self") {
            return false;
        }
        let real = real(path);
        let found: Vec<String> = names(&real);
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        let uses = Use { writes: false, removes: false };
        if self.places().any(|place| place.named.iter().any(|it| leads_to(&found, it, false, uses)))
        {
            return true;
        }
        match fs::metadata(&real) {
            Ok(found) if found.is_file() && found.nlink() > 1 => {
                // Nothing in /proc has a second name.
                let mut places = self.places().filter(|place| !place.path.starts_with("/proc"));
                places.any(|place| has_file(&place.path, &found))
            }
            _ => false,
        }
    }
}

/// Whether a place is this file, or has it in it.
fn has_file(place: &Path, file: &Metadata) -> bool {
    let Ok(found) = fs::metadata(place) else { return false };
    let (mut left, mut seen) = (vec![(place.to_owned(), found)], 0);
    while let Some((path, found)) = left.pop() {
        seen += 1;
        // What cannot be compared is taken for ours.
        if seen > MAX_FILES || (found.dev(), found.ino()) == (file.dev(), file.ino()) {
            return true;
        }
        if found.is_dir()
            && found.dev() == file.dev()
            && let Ok(entries) = fs::read_dir(&path)
        {
            // Of an entry that is a link, this is the link itself.
            left.extend(entries.flatten().filter_map(|it| Some((it.path(), it.metadata().ok()?))));
        }
    }
    false
}

/// The path from the root on. The home folder is that of this process.
pub(crate) fn absolute(path: &str, folder: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let home = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (home, std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => format!("{}{rest}", home.to_string_lossy()),
        _ => format!("{folder}/{path}"),
    }
}
