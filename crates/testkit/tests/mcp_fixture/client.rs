//! A bare client: lines in, lines out, nothing done for the test.
#![expect(clippy::needless_pass_by_value, reason = "tests read better without borrows")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use chio_testkit::process::until;
use serde_json::{Value, json};

/// How long an answer may take. Only a failing test waits for so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running fixture, killed when the test ends.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
}

impl Client {
    /// A fixture with these options that was told nothing yet.
    pub(crate) fn bare(options: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-fixture"));
        command.args(options.split_whitespace()).env("CHIO_FIXTURE_SEEN", "not-this-value");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a fixture");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.split(b'\n').map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { input: child.stdin.take(), child, lines }
    }

    /// A fixture that was told what this client can do.
    pub(crate) fn new(options: &str, capabilities: Value) -> Self {
        let mut client = Self::bare(options);
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        client.request(0, "initialize", params);
        assert_eq!(client.message()["result"]["protocolVersion"], "2025-11-25");
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub(crate) fn send(&mut self, message: Value) {
        let input = self.input.as_mut().expect("an open input");
        writeln!(input, "{message}").expect("a fixture that reads");
    }

    pub(crate) fn request(&mut self, id: u64, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str, arguments: Value) {
        self.request(id, "tools/call", json!({"name": tool, "arguments": arguments}));
    }

    /// The next line, whatever it is.
    #[track_caller]
    pub(crate) fn line(&mut self) -> Vec<u8> {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }

    /// The next line, which is a message.
    #[track_caller]
    pub(crate) fn message(&mut self) -> Value {
        serde_json::from_slice(&self.line()).expect("a message")
    }

    /// The result of a request that nothing comes before.
    #[track_caller]
    pub(crate) fn result_of(&mut self, id: u64) -> Value {
        let message = self.message();
        assert_eq!(message["id"], id, "{message}");
        assert!(message.get("result").is_some(), "{message}");
        message["result"].clone()
    }

    /// Calls a tool that answers with one text and nothing before.
    #[track_caller]
    pub(crate) fn text_of(&mut self, tool: &str, arguments: Value) -> String {
        self.call(77, tool, arguments);
        text(&self.result_of(77))
    }

    /// Ends the input, and waits until the fixture ends.
    pub(crate) fn end(&mut self) -> ExitStatus {
        drop(self.input.take());
        self.wait()
    }

    /// Waits until the fixture ends.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        until("the fixture to end", || self.child.try_wait().expect("the state of a process"))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The one text of a result.
#[track_caller]
pub(crate) fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().expect("a text").to_owned()
}
