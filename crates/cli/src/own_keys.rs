//! The keys and tokens of the data directory, which no output of a tool may have in it. Other
//! processes on the same directory add theirs while this one runs.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chio_policy::own::Own;
use zeroize::Zeroizing;

/// How often the directory is looked at.
const BEAT: Duration = Duration::from_secs(1);
/// How deep keys lie in it.
const DEPTH: usize = 3;
/// The longest file of a key or token, in bytes.
const MAX_SECRET: u64 = 4096;

/// The keys of a data directory.
#[derive(Debug, Clone)]
pub(crate) struct OwnKeys {
    own: Arc<Own>,
    data: Option<PathBuf>,
    /// Files that were read. A key never changes.
    seen: HashSet<PathBuf>,
}

impl OwnKeys {
    /// Those that are there now.
    pub(crate) fn new(own: &Arc<Own>, data: Option<&Path>) -> Self {
        let data = data.map(Path::to_owned);
        let mut keys = Self { own: Arc::clone(own), data, seen: HashSet::new() };
        keys.look();
        keys
    }

    /// Looks for new ones as long as the process serves.
    pub(crate) async fn watch(&mut self) -> Infallible {
        loop {
            tokio::time::sleep(BEAT).await;
            let mut keys = self.clone();
            let look = move || {
                keys.look();
                keys
            };
            if let Ok(keys) = tokio::task::spawn_blocking(look).await {
                *self = keys;
            }
        }
    }

    fn look(&mut self) {
        if let Some(data) = self.data.clone() {
            self.look_in(&data, DEPTH);
        }
    }

    /// What cannot be read is no key of ours.
    fn look_in(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let ends = |end: &str| path.extension().is_some_and(|found| found == end);
            let is_secret = name == "key" || ends("key") || ends("token");
            if is_secret && !self.seen.contains(&path) {
                let small = entry.metadata().is_ok_and(|found| found.len() <= MAX_SECRET);
                if small && let Ok(secret) = fs::read_to_string(&path).map(Zeroizing::new) {
                    self.own.withhold(&secret);
                    self.seen.insert(path);
                }
            } else if depth > 0 && entry.file_type().is_ok_and(|found| found.is_dir()) {
                self.look_in(&path, depth - 1);
            }
        }
    }
}
