//! What belongs to Chio itself and is out of every agent's reach: its files, its listeners, and the
//! values of its keys and tokens.
//!
//! The program fills it while it starts; the guard `own-files` judges by it, in every policy.

pub(crate) mod listeners;
pub(crate) mod paths;
pub(crate) mod pieces;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use self::paths::Place;
use self::pieces::Pieces;

/// The data directory of a working folder, unless the operator names another.
pub const DEFAULT_FOLDER: &str = ".chio";
/// The configuration of a working folder, unless the operator names another.
pub const DEFAULT_FILE: &str = "chio.yaml";

/// What belongs to this program.
#[derive(Debug)]
pub struct Own {
    known: RwLock<Arc<Known>>,
}

/// What is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// Where relative paths begin.
    folder: PathBuf,
    pub(crate) places: Vec<Place>,
    /// Those of the policies in force, by the role of each.
    policies: HashMap<&'static str, Vec<Place>>,
    pub(crate) addresses: Vec<SocketAddr>,
    /// Where relative paths of a tool server's calls begin.
    servers: HashMap<String, Vec<PathBuf>>,
    pub(crate) pieces: Arc<Pieces>,
}

impl Default for Own {
    /// What is usual in the current folder.
    fn default() -> Self {
        Self::of_folder(Path::new(""))
    }
}

impl Own {
    /// What is usual in a working folder: its data directory and its configuration.
    pub fn of_folder(folder: &Path) -> Self {
        let current = || std::env::current_dir().unwrap_or_else(|_| "/".into());
        let known = Known {
            folder: std::path::absolute(folder).unwrap_or_else(|_| current()),
            places: Vec::new(),
            policies: HashMap::new(),
            addresses: Vec::new(),
            servers: HashMap::new(),
            pieces: Arc::default(),
        };
        let own = Self { known: RwLock::new(Arc::new(known)) };
        own.protect(Path::new(DEFAULT_FOLDER), true);
        own.protect(Path::new(DEFAULT_FILE), false);
        // The memory and the environment of this process.
        own.protect(Path::new(&format!("/proc/{}", std::process::id())), true);
        own
    }

    /// Puts a file, or a folder and all that is in it, out of reach. `secret` where not even a look
    /// at it among others does no harm.
    pub fn protect(&self, path: &Path, secret: bool) {
        self.change(|known| {
            let place = Place::new(&known.folder.join(path), secret);
            known.places.retain(|known| !place.covers(known));
            if !known.places.iter().any(|known| known.covers(&place)) {
                known.places.push(place);
            }
        });
    }

    /// Puts the files of a policy out of reach, in place of those that it had before.
    pub fn protect_policy(&self, role: &'static str, files: &[PathBuf]) {
        self.change(|known| {
            let places = files.iter().map(|file| Place::new(&known.folder.join(file), false));
            let places = places.collect();
            known.policies.insert(role, places);
        });
    }

    /// Puts a listener out of reach.
    pub fn listens_at(&self, address: SocketAddr) {
        self.change(|known| known.addresses.push(address));
    }

    /// Notes where the relative paths of a tool server's calls may begin, besides here.
    pub fn serves_in(&self, server_id: &str, folder: &Path) {
        self.change(|known| {
            let folder = known.folder.join(folder);
            let folders = known.servers.entry(server_id.to_owned()).or_default();
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        });
    }

    /// Withholds a secret wherever output has it. The secret itself is not kept.
    pub fn withhold(&self, secret: &str) {
        self.change(|known| Arc::make_mut(&mut known.pieces).add(secret));
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        let mut known = self.known.write();
        change(Arc::make_mut(&mut known));
    }

    pub(crate) fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read())
    }
}

impl Known {
    /// Every place that is out of reach.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().chain(self.policies.values().flatten())
    }

    /// Where the relative paths of a tool server's calls may begin.
    pub(crate) fn folders(&self, server_id: &str) -> impl Iterator<Item = &Path> {
        let own = self.servers.get(server_id).into_iter().flatten().map(PathBuf::as_path);
        std::iter::once(self.folder.as_path()).chain(own)
    }
}
