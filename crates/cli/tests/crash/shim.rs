//! The disk that forgets and fails: a library that is compiled for the test and preloaded into the
//! server. See `crates/testkit/shim/unsynced.c`.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use chio_testkit::process::copy_tree;
use chio_testkit::skip;

use crate::support::{Chance, DATA, World};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/shim/unsynced.c");
const LIBRARY: &str = "unsynced.so";
const SHADOW: &str = "shadow";
const FAULT: &str = "fault";

/// How a disk fails.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// There is no room to write.
    Full,
    /// What was written cannot be made durable.
    Sync,
}

/// How many of a world's files are left as the killed process had them, synced or not. Either can
/// happen to each of them when the power fails.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spared {
    None,
    Some,
}

/// Compiles a library that is preloaded for a test; none, and a note of it, without a compiler.
pub(crate) fn library(world: &World, source: &str, name: &str, test: &str) -> Option<PathBuf> {
    let library = fs::canonicalize(world.folder.root()).unwrap().join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o"]);
    compiler.arg(&library).args([source, "-ldl", "-lpthread"]);
    match compiler.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip(test, "`cc` is not on the PATH");
            None
        }
        built => {
            let built = built.unwrap();
            let complaint = String::from_utf8_lossy(&built.stderr);
            assert!(built.status.success(), "{complaint}");
            Some(library)
        }
    }
}

/// A world whose disk forgets and fails.
pub(crate) struct Disk {
    /// The world's folder, without links.
    root: PathBuf,
}

impl Disk {
    /// The disk of a world; none, and a note of it, when there is no compiler.
    pub(crate) fn of(world: &World, test: &str) -> Option<Self> {
        let root = fs::canonicalize(world.folder.root()).unwrap();
        library(world, SOURCE, LIBRARY, test).map(|_| Self { root })
    }

    fn data(&self) -> PathBuf {
        self.root.join(DATA)
    }

    fn shadow(&self) -> PathBuf {
        self.root.join(SHADOW)
    }

    /// Puts a command on this disk. All that is on the disk now is durable.
    pub(crate) fn under<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let _ = fs::remove_dir_all(self.shadow());
        fs::create_dir_all(self.shadow()).unwrap();
        if self.data().exists() {
            copy_tree(&self.data(), &self.shadow());
        }
        command
            .env("LD_PRELOAD", self.root.join(LIBRARY))
            .env("CHIO_SHIM_DATA", self.data())
            .env("CHIO_SHIM_SHADOW", self.shadow())
            .env("CHIO_SHIM_FAULT", self.root.join(FAULT))
    }

    /// Lets the disk fail from now on.
    pub(crate) fn fail(&self, fault: Fault) {
        let draft = self.root.join("fault.draft");
        fs::write(&draft, if matches!(fault, Fault::Full) { "full" } else { "sync" }).unwrap();
        fs::rename(draft, self.root.join(FAULT)).unwrap();
    }

    /// Lets the disk work again.
    pub(crate) fn mend(&self) {
        fs::remove_file(self.root.join(FAULT)).unwrap();
    }

    /// Cuts the power, after the process was killed: what it had not synced is gone.
    pub(crate) fn cut(&self, spared: Spared, chance: &mut Chance) {
        let (data, shadow) = (self.data(), self.shadow());
        let mut names = BTreeSet::new();
        list(&data, Path::new(""), &mut names);
        list(&shadow, Path::new(""), &mut names);
        for name in names {
            let (real, kept) = (data.join(&name), shadow.join(&name));
            if matches!(spared, Spared::Some) && chance.once_in(4) {
                continue;
            }
            let _ = fs::remove_file(&real);
            // Shared memory is never on the disk.
            if kept.is_file() && !name.to_string_lossy().ends_with("-shm") {
                fs::create_dir_all(real.parent().unwrap()).unwrap();
                fs::copy(&kept, &real).unwrap();
            }
        }
        remove_shared_memory(&data);
        remove_lost_folders(&data, &shadow);
    }
}

/// The files below a folder.
fn list(root: &Path, below: &Path, names: &mut BTreeSet<PathBuf>) {
    let Ok(listed) = fs::read_dir(root.join(below)) else { return };
    for entry in listed {
        let entry = entry.unwrap();
        let name = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            list(root, &name, names);
        } else {
            names.insert(name);
        }
    }
}

fn remove_shared_memory(data: &Path) {
    for name in ["store.db-shm", "index.db-shm"] {
        let _ = fs::remove_file(data.join(name));
    }
}

/// Removes folders that were not made durable, unless something in them was.
fn remove_lost_folders(data: &Path, shadow: &Path) {
    let Ok(listed) = fs::read_dir(data) else { return };
    for entry in listed {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            let kept = shadow.join(entry.file_name());
            remove_lost_folders(&entry.path(), &kept);
            if !kept.is_dir() {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}
