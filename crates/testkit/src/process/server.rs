//! A server process, killed when the test ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::Wire;

/// How long anything may take that should happen soon. Only a failing test waits for so long.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often to look again.
const BEAT: Duration = Duration::from_millis(10);
/// What a server says before the address that it listens at.
const LISTENING: &str = "listening on ";
/// What a server says before its kernel's key.
const KERNEL: &str = "kernel ";

/// A running server. It is killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    lines: Lines,
}

/// What the server has said on standard error.
#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn of(stderr: ChildStderr) -> Self {
        let lines = Self::default();
        let written = lines.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                written.locked().push(line);
            }
        });
        lines
    }

    fn locked(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rest of the first line with this in it.
    fn after(&self, mark: &str) -> Option<String> {
        let lines = self.locked();
        let found = lines.iter().find_map(|line| line.split_once(mark));
        found.map(|(_, rest)| rest.to_owned())
    }
}

/// Waits until there is something, and gives it.
///
/// # Panics
/// When it takes too long.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
        thread::sleep(BEAT);
    }
}

impl Server {
    /// Starts a server and waits until it says where it listens.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let mut server = Self::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()));
        let lines = server.lines.clone();
        until("a server to listen", || {
            let ended = server.child.try_wait().ok().flatten();
            assert!(ended.is_none(), "the server ended: {:?}", lines.locked());
            lines.after(LISTENING)
        });
        server
    }

    /// Starts a server; standard input and output are the caller's business.
    #[must_use]
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("a server process");
        let lines = Lines::of(child.stderr.take().expect("a pipe"));
        Self { child, lines }
    }

    /// The most memory that it has used at any time, in MiB.
    ///
    /// # Panics
    /// When the process is gone.
    #[must_use]
    pub fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("a process that runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kilobytes.expect("how much memory it used") / 1024
    }

    /// Where it listens.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.lines.after(LISTENING).expect("a server that listens")
    }

    /// The key of its kernel, in hex.
    #[must_use]
    pub fn kernel_key(&self) -> String {
        until("the kernel's key", || self.lines.after(KERNEL))
    }

    /// All that it said on standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.lines.locked().join("\n")
    }

    /// A bare connection to it.
    #[must_use]
    pub fn connect(&self) -> Wire {
        Wire::connect(&self.endpoint())
    }

    /// Sends it a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        let sent = kill.arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal could not be sent");
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> ExitStatus {
        until("a server to end", || self.child.try_wait().expect("the state of a process"))
    }

    /// Ends it in good order.
    ///
    /// # Panics
    /// When it does not end well.
    pub fn end(&mut self) {
        self.signal("TERM");
        let status = self.wait();
        assert!(status.success(), "{status}: {}", self.stderr());
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
