//! A folder for one run, and the processes that were started from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};

/// A folder that is gone when dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("chio-suite-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).context("no folder for the run")?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.0
    }

    /// A name here for a program that is elsewhere, by which its processes can be told.
    pub(crate) fn link(&self, program: &Path) -> Result<PathBuf> {
        let link = self.path(&program.file_name().unwrap_or_default().to_string_lossy());
        std::os::unix::fs::symlink(program, &link).context("no link to a program")?;
        Ok(link)
    }

    /// The processes that were started with a path in this folder.
    pub(crate) fn processes(&self) -> Vec<String> {
        let wanted = format!("{}/", self.0.display());
        // One that ends while it is looked at does not hide the others.
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let lines = entries.filter_map(|entry| {
            let number: u32 = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(&wanted).then(|| format!("{number} {}", line.trim_end()))
        });
        lines.collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use super::Folder;

    #[test]
    fn a_process_is_told_by_the_folder_that_it_was_started_from() {
        let (folder, other) = (Folder::new().unwrap(), Folder::new().unwrap());
        let sleep = ["/bin/sleep", "/usr/bin/sleep"].map(Path::new);
        let sleep = sleep.into_iter().find(|path| path.exists()).unwrap();
        let mut child = Command::new(folder.link(sleep).unwrap()).arg("600").spawn().unwrap();
        // Between its start and its first instruction a process has no command line yet.
        let look = |_| {
            std::thread::sleep(Duration::from_millis(10));
            Some(folder.processes()).filter(|seen| !seen.is_empty())
        };
        let seen = (0..500).find_map(look).unwrap_or_default();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert!(seen[0].starts_with(&child.id().to_string()), "{seen:?}");
        assert!(folder.processes().is_empty());
        assert!(other.processes().is_empty());
    }
}
