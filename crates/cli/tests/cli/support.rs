//! A folder of its own for each test, and the binary run in it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use chio_testkit::key;
pub(crate) use chio_testkit::process::Run;

/// A moment at which the golden tokens are valid.
pub(crate) const NOW: &str = "1700000100";

/// A folder that is gone when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("chio-cli-test-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// A folder with the key files `01.key` to `04.key`, of the golden seeds.
    pub(crate) fn with_keys() -> Self {
        let folder = Self::new();
        for seed in 1..=4 {
            folder.write_key(&format!("0{seed}.key"), seed);
        }
        folder
    }

    fn write_key(&self, name: &str, seed: u8) {
        self.write(name, &format!("{}\n", *key(seed).seed_hex()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o600)).unwrap();
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> =
            entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The binary, to be run in this folder.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chio"));
        command.args(words).current_dir(&self.0).env("TMPDIR", &self.0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the binary with this on standard input.
    pub(crate) fn run_with(&self, input: &[u8], words: &[&str]) -> Run {
        Run::of(&mut self.command(words), input)
    }

    pub(crate) fn run(&self, words: &[&str]) -> Run {
        self.run_with(b"", words)
    }

    /// Runs a command line that is split at blanks.
    pub(crate) fn line(&self, line: &str) -> Run {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The public key of a golden seed, in hex.
pub(crate) fn public(seed: u8) -> String {
    key(seed).public_key().to_hex()
}
