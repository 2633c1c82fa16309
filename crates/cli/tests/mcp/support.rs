//! A world for each test: a folder, and the binary that is run in it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use chio_testkit::process::{Folder, Run, Server, mcp_fixture, until};
use serde_json::Value;

/// The binary that is tested.
const CHIO: &str = env!("CARGO_BIN_EXE_chio");

/// A folder that the binary is run in.
pub(crate) struct World {
    pub(crate) folder: Folder,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { folder: Folder::new() }
    }

    /// The binary, to be run in this world.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(CHIO);
        command.args(words).current_dir(self.folder.root()).env("TMPDIR", self.folder.root());
        command.env_remove("CHIO_AUTH_TOKEN").stdin(Stdio::null());
        command
    }

    /// Runs the binary with these words.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> Run {
        Run::of(&mut self.command(words), b"")
    }

    /// Runs a command line that is split at blanks.
    #[track_caller]
    pub(crate) fn line(&self, line: &str) -> Run {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Starts `chio up` with its data in `.chio`, and waits until it has told what to try.
    pub(crate) fn up(&self, words: &[&str]) -> (Server, Printed) {
        let mut command = self.command(&[&["up", "--listen", "127.0.0.1:0"], words].concat());
        let (server, printed) = start(&mut command);
        until("chio up to be ready", || printed.text().contains("Ctrl-C").then_some(()));
        (server, printed)
    }

    /// Starts a command that serves, and keeps what it prints.
    pub(crate) fn start(&self, words: &[&str]) -> (Server, Printed) {
        start(&mut self.command(words))
    }

    /// A script that starts the fixture and leaves its process id in `children`.
    pub(crate) fn wrapper(&self) -> String {
        let script =
            format!("#!/bin/sh\necho $$ >> children\nexec '{}'\n", mcp_fixture().display());
        self.folder.write("wrapper.sh", script);
        let path = self.folder.path("wrapper.sh");
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// Waits until every child that the wrapper started is gone; tells how many there were.
    #[track_caller]
    pub(crate) fn children_gone(&self) -> usize {
        let children = self.folder.read("children");
        for child in children.lines() {
            let process = Path::new("/proc").join(child);
            until("a child to be gone", || (!process.exists()).then_some(()));
        }
        children.lines().count()
    }

    /// The receipts of a store, newest first.
    #[track_caller]
    pub(crate) fn receipts(&self, data: &str) -> Vec<Value> {
        let listed = self.run(&["receipt", "list", "--data", data, "--json"]).ends(0).json();
        let rows = listed["receipts"].as_array().unwrap().iter();
        rows.map(|row| row["receipt"].clone()).collect()
    }

    /// The permission bits of a file.
    pub(crate) fn mode(&self, name: &str) -> u32 {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(self.folder.path(name)).unwrap().permissions().mode() & 0o777
    }
}

/// What a process has printed so far.
#[derive(Clone, Default)]
pub(crate) struct Printed(Arc<Mutex<String>>);

impl Printed {
    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for a line with this in it.
    #[track_caller]
    pub(crate) fn line(&self, part: &str) -> String {
        until(part, || self.text().lines().find(|line| line.contains(part)).map(str::to_owned))
    }
}

/// Starts a server whose standard output is read all the time.
fn start(command: &mut Command) -> (Server, Printed) {
    let (reader, writer) = std::io::pipe().unwrap();
    let server = Server::spawn(command.stdout(Stdio::from(writer)));
    // So that a process that ends ends its output.
    command.stdout(Stdio::null());
    let printed = Printed::default();
    let kept = printed.clone();
    thread::spawn(move || {
        for line in BufReader::new(reader).lines().map_while(Result::ok) {
            let mut text = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
            text.push_str(&line);
            text.push('\n');
        }
    });
    (server, printed)
}
