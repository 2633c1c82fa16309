//! A folder that a test has for itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use chio_core::crypto::Keypair;

/// A folder that is gone when dropped. Its path is short, because it holds sockets.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder.
    #[must_use]
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("chio-test-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder for the test");
        Self(folder)
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// Something in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("a file of the test");
    }

    /// Reads a file.
    #[must_use]
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file of the test")
    }

    /// Writes a key file.
    pub fn write_key(&self, name: &str, key: &Keypair) {
        self.write(name, format!("{}\n", *key.seed_hex()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::Permissions::from_mode(0o600);
            fs::set_permissions(self.path(name), mode).expect("the mode of a key file");
        }
    }

    /// Reads a key file, such as the authority's key in the folder of a store.
    #[must_use]
    pub fn read_key(&self, name: &str) -> Keypair {
        Keypair::from_seed_hex(self.read(name).trim()).expect("a key file")
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Copies a folder of plain files and folders.
///
/// # Panics
/// When it cannot be read or written.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a tree of plain files");
    for entry in fs::read_dir(from).expect("a tree of plain files") {
        let entry = entry.expect("a tree of plain files");
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().expect("a tree of plain files").is_dir() {
            copy_tree(&source, &target);
        } else {
            fs::copy(source, target).expect("a tree of plain files");
        }
    }
}
