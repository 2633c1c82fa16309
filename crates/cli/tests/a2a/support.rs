//! A world for each test: a folder, the stores in it, and the binaries that work on them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use chio_testkit::process::{Folder, Run, Server, until};
use serde_json::{Value, json};

/// The binary that is tested.
const CHIO: &str = env!("CARGO_BIN_EXE_chio");

/// A folder with stores in it.
pub(crate) struct World {
    pub(crate) folder: Folder,
}

/// A process that serves A2A.
pub(crate) struct Agent {
    server: Server,
    /// Where its card is.
    pub(crate) base: String,
}

/// An answer over HTTP.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { folder: Folder::new() }
    }

    /// Serves the demo tools from a store, with these options.
    pub(crate) fn up(&self, data: &str, options: &str) -> Agent {
        let line = format!("up --listen 127.0.0.1:0 --data {data} {options}");
        self.start(&line.split_whitespace().collect::<Vec<_>>(), data)
    }

    /// Starts something that tells where it listens in a file beside its store.
    pub(crate) fn start(&self, words: &[&str], data: &str) -> Agent {
        let file = self.folder.path(&format!("{data}/endpoint.json"));
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new(CHIO);
        self.within(command.args(words)).stdout(Stdio::null());
        let server = Server::spawn(&mut command);
        let endpoint = until("an endpoint", || {
            serde_json::from_slice::<Value>(&std::fs::read(&file).ok()?).ok()
        });
        let base = endpoint["mcp"].as_str().unwrap().trim_end_matches("/mcp").to_owned();
        Agent { server, base }
    }

    fn within<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.current_dir(self.folder.root()).env("TMPDIR", self.folder.root());
        command.env_remove("CHIO_AUTH_TOKEN").stdin(Stdio::null())
    }

    /// Runs the binary with these words.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> Run {
        Run::of(self.within(Command::new(CHIO).args(words)), b"")
    }

    /// Runs the binary with these words and this input.
    #[track_caller]
    pub(crate) fn run_with(&self, words: &[&str], input: &[u8]) -> Run {
        Run::of(self.within(Command::new(CHIO).args(words)), input)
    }

    /// Runs a command line that is split at blanks.
    #[track_caller]
    pub(crate) fn line(&self, line: &str) -> Run {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// All receipts of a store, oldest first.
    #[track_caller]
    pub(crate) fn receipts(&self, data: &str) -> Vec<Value> {
        let listed = self.line(&format!("receipt list --data {data} --json --limit 1000"));
        let listed = listed.ends(0).json();
        let rows = listed["receipts"].as_array().unwrap().iter().rev();
        rows.map(|row| row["receipt"].clone()).collect()
    }

    /// Looks whether a store holds.
    #[track_caller]
    pub(crate) fn audit(&self, data: &str) {
        self.line(&format!("log audit --data {data}")).ends(0);
    }
}

/// A message of A2A 1.0 with these parts, that is no other.
pub(crate) fn message(parts: &Value) -> Value {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let id = format!("m-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": parts}})
}

impl Agent {
    /// The most memory that it has used at any time, in MiB.
    pub(crate) fn most_memory(&self) -> u64 {
        self.server.most_memory()
    }

    /// Sends a request over HTTP.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let host = self.base.strip_prefix("http://").unwrap();
        self.request_of(host, (method, path), headers, body)
    }

    /// Sends a request to whom it calls by this name.
    pub(crate) fn request_of(
        &self,
        name: &str,
        (method, path): (&str, &str),
        headers: &str,
        body: &str,
    ) -> Answer {
        let host = self.base.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\
             Content-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.get(9..12).unwrap().parse().unwrap();
        let body = serde_json::from_str(body).unwrap_or_default();
        Answer { status, head: head.to_owned(), body }
    }

    /// Calls a method of A2A 1.0 at a mount. Gives the whole answer.
    pub(crate) fn call(&self, mount: &str, method: &str, params: &Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let answer = self.request("POST", mount, "A2A-Version: 1.0\r\n", &body.to_string());
        assert_eq!((answer.status, &answer.body["id"]), (200, &json!(7)), "{:?}", answer.body);
        answer.body
    }

    /// Sends a message with these parts to a skill, and reads no answer: the caller is there as long as
    /// what this gives.
    pub(crate) fn leave(&self, skill: &str, parts: &Value) -> TcpStream {
        let host = self.base.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage",
            "params": message(parts)});
        let (body, length) = (call.to_string(), call.to_string().len());
        write!(
            stream,
            "POST /skills/{skill} HTTP/1.1\r\nHost: {host}\r\nA2A-Version: 1.0\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream
    }

    /// Sends a message with these parts to a skill. Gives the task.
    pub(crate) fn send(&self, skill: &str, parts: &Value) -> Value {
        let answer = self.call(&format!("/skills/{skill}"), "SendMessage", &message(parts));
        answer["result"]["task"].clone()
    }
}
