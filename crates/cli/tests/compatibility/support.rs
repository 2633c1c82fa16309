//! Copies of the fixtures, and the binary that works on them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use chio_testkit::golden;
use chio_testkit::process::{Folder, Run, Running, Server, until};
use serde_json::{Value, json};

/// A copy of a fixture that a test has for itself.
pub(crate) struct Copy {
    pub(crate) folder: Folder,
}

/// Runs a test on a copy of each fixture.
#[track_caller]
pub(crate) fn each_fixture(test: impl Fn(&Copy)) {
    let mut versions = 0;
    for entry in fs::read_dir(golden::root().join("spec/fixtures")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let copy = Copy { folder: Folder::new() };
            copy_folder(&path, copy.folder.root());
            test(&copy);
            versions += 1;
        }
    }
    assert!(versions > 0, "expected fixtures");
}

/// Copies a folder. A store and its keys are its owner's alone, which a checkout does not keep.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let from = entry.unwrap().path();
        let to = to.join(from.file_name().unwrap());
        if from.is_dir() {
            copy_folder(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chio"));
    command.args(words).current_dir(folder).env("TMPDIR", folder);
    command.env_remove("CHIO_AUTH_TOKEN").stdin(Stdio::null());
    command
}

/// Runs the binary in a folder.
#[track_caller]
pub(crate) fn chio(folder: &Path, words: &[&str]) -> Run {
    Run::of(&mut command(folder, words), b"")
}

impl Copy {
    /// Runs the binary in the copy.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> Run {
        chio(self.folder.root(), words)
    }

    /// Runs a command line that is split at blanks.
    #[track_caller]
    pub(crate) fn line(&self, line: &str) -> Run {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Reads a JSON file.
    pub(crate) fn read(&self, name: &str) -> Value {
        serde_json::from_str(&self.folder.read(name)).unwrap()
    }

    /// What the version that made the fixture wrote.
    pub(crate) fn expected(&self, name: &str) -> Value {
        self.read(&format!("expected/{name}"))
    }

    /// The authority's public key.
    pub(crate) fn authority(&self) -> String {
        self.expected("kernels.json")["authority"].as_str().unwrap().to_owned()
    }

    /// The receipts of the store that a filter leaves, as `chio receipt list` has them.
    #[track_caller]
    pub(crate) fn receipts(&self, filter: &str) -> Vec<Value> {
        let line = format!("receipt list --data store --json --limit 1000 {filter}");
        self.line(&line).ends(0).json()["receipts"].as_array().unwrap().clone()
    }

    /// Serves the store at a socket.
    pub(crate) fn serve(&self, socket: &str) -> Server {
        let words = ["native", "serve", "--data", "store", "--unix", socket];
        Server::start(&mut command(self.folder.root(), &words))
    }

    /// Serves the store with every edge. Gives the URL of the HTTP listener, too.
    pub(crate) fn up(&self) -> (Server, String) {
        let words = ["up", "--data", "store", "--listen", "127.0.0.1:0"];
        let server = Server::spawn(command(self.folder.root(), &words).stdout(Stdio::null()));
        let file = self.folder.path("store/endpoint.json");
        let endpoint: Value =
            until("an endpoint", || serde_json::from_slice(&fs::read(&file).ok()?).ok());
        let url = endpoint["mcp"].as_str().unwrap().trim_end_matches("/mcp").to_owned();
        (server, url)
    }

    /// Calls a tool of the demo server with a token of the fixture.
    #[track_caller]
    pub(crate) fn call(&self, socket: &str, token: &str, words: &[&str]) -> Run {
        let token = format!("tokens/{token}.json");
        let call = ["native", "call", "--unix", socket, "--token", &token, "demo"];
        self.run(&[&call, words].concat())
    }

    /// Begins to call a tool.
    pub(crate) fn start_call(&self, socket: &str, token: &str, words: &[&str]) -> Running {
        let token = format!("tokens/{token}.json");
        let call = ["native", "call", "--unix", socket, "--token", &token, "demo"];
        Running::start(&mut command(self.folder.root(), &[&call, words].concat()))
    }

    /// The id of the only request for approval that waits, as soon as one does.
    #[track_caller]
    pub(crate) fn waiting(&self) -> String {
        until("a call to wait for approval", || {
            let listed = self.line("approvals list --data store --json").ends(0).json();
            Some(listed["approvals"][0]["request"]["id"].as_str()?.to_owned())
        })
    }
}

/// Sends a message to a skill over A2A. Gives the task.
pub(crate) fn send_message(url: &str, skill: &str, params: &Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
    let (host, body) = (url.strip_prefix("http://").unwrap(), request.to_string());
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST /skills/{skill} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nA2A-Version: 1.0\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let answer: Value = serde_json::from_str(body).unwrap();
    answer["result"]["task"].clone()
}
