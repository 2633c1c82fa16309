//! The product, started as a user would.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Rig;
use super::bounded::{self, tail};
use super::folder::Folder;

/// How long it may take to listen, to end, or to answer a question about its store.
const PATIENCE: Duration = Duration::from_secs(60);
const BEAT: Duration = Duration::from_millis(20);
/// What it says before the port that it listens at.
const LISTENING: &str = "listening on http://127.0.0.1:";

/// A running `chio` that serves over HTTP.
pub(crate) struct Chio<'a> {
    rig: &'a Rig,
    child: Child,
    port: u16,
    folder: &'a Folder,
    said: Lines,
}

impl<'a> Chio<'a> {
    /// Starts it in the folder, with state in its `data`, and waits until it listens.
    pub(crate) fn start(
        rig: &'a Rig,
        folder: &'a Folder,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Self> {
        let mut command = Command::new(&rig.chio);
        command.args(arguments).current_dir(folder.root());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().context("cannot run `chio`")?;
        let said = Lines::of(child.stderr.take());
        let mut chio = Self { rig, child, port: 0, folder, said };
        chio.port = chio.listens()?;
        Ok(chio)
    }

    fn listens(&mut self) -> Result<u16> {
        let start = Instant::now();
        loop {
            if let Some(port) = self.said.locked().iter().find_map(|line| port(line)) {
                return Ok(port);
            }
            let ended = self.child.try_wait().context("the state of `chio`")?;
            if ended.is_some() || start.elapsed() > PATIENCE {
                let how = ended.map_or("did not listen".to_owned(), |status| status.to_string());
                bail!("`chio`: {how}\n{}", self.complaints());
            }
            thread::sleep(BEAT);
        }
    }

    /// The port that it listens at.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// The last that it said.
    pub(crate) fn complaints(&self) -> String {
        tail(&self.said.locked().join("\n"), 30)
    }

    /// Ends it; answers what it left undone or behind.
    pub(crate) fn end(mut self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        bounded::signal("TERM", &self.child.id().to_string());
        match bounded::wait(&mut self.child, PATIENCE) {
            Some(status) if status.success() => {}
            Some(status) => {
                problems.push(format!("`chio` ended with {status}\n{}", self.complaints()));
            }
            None => problems.push(format!("`chio` did not end\n{}", self.complaints())),
        }
        let left = self.left_behind();
        if !left.is_empty() {
            problems.push(format!("left behind: {}", left.join(", ")));
        }
        let audit = self.ask(&["log", "audit"])?;
        if !audit.is_success() {
            problems.push(format!("`chio log audit`: {}\n{}", audit.describe(), audit.stdout));
        }
        Ok(problems)
    }

    /// Processes of the wrapped server that outlive it by more than a moment.
    fn left_behind(&self) -> Vec<String> {
        let start = Instant::now();
        loop {
            let left = self.folder.processes();
            if left.is_empty() || start.elapsed() > Duration::from_secs(5) {
                for process in &left {
                    let number = process.split(' ').next().unwrap_or_default();
                    bounded::signal("KILL", number);
                }
                return left;
            }
            thread::sleep(BEAT);
        }
    }

    /// Runs another command on the same state.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<bounded::Ran> {
        let mut command = Command::new(&self.rig.chio);
        command.args(arguments).arg("--data").arg(self.folder.path("data"));
        bounded::run(command, PATIENCE)
    }
}

impl Drop for Chio<'_> {
    fn drop(&mut self) {
        bounded::signal("KILL", &format!("-{}", self.child.id()));
        let _ = self.child.wait();
    }
}

/// Every receipt in the store of a run, newest first.
pub(crate) fn receipts(rig: &Rig, folder: &Folder) -> Result<Vec<Value>> {
    let mut command = Command::new(&rig.chio);
    command.args(["receipt", "list", "--json", "--limit", "1000", "--data"]);
    command.arg(folder.path("data"));
    let ran = bounded::run(command, PATIENCE)?;
    if !ran.is_success() {
        bail!("`chio receipt list`: {}", ran.describe());
    }
    let document: Value = serde_json::from_str(&ran.stdout).context("no list of receipts")?;
    let rows = document.get("receipts").and_then(Value::as_array).context("no receipts")?;
    Ok(rows.iter().filter_map(|row| row.get("receipt")).cloned().collect())
}

fn port(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once(LISTENING)?;
    let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

/// What it has said on standard error.
#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn of(stderr: Option<ChildStderr>) -> Self {
        let lines = Self::default();
        let written = lines.clone();
        if let Some(stderr) = stderr {
            thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    written.locked().push(line);
                }
            });
        }
        lines
    }

    fn locked(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::port;

    #[test]
    fn the_port_is_read_from_the_line_that_names_it() {
        assert_eq!(port("chio: listening on http://127.0.0.1:4711/mcp"), Some(4711));
        assert_eq!(port("listening on http://127.0.0.1:4711"), Some(4711));
        assert_eq!(port("listening on http://127.0.0.1:x/mcp"), None);
        assert_eq!(port("kernel abc"), None);
    }
}
