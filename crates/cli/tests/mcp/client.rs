//! A client on standard input and output: a message on each line, nothing done for the test.

use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use chio_testkit::process::Server;
use serde_json::{Value, json};

/// How long a message may take. Only a failing test waits for so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of a process that it has started.
pub(crate) struct Client {
    pub(crate) server: Server,
    input: Option<PipeWriter>,
    messages: Receiver<String>,
    last_id: u64,
    /// What came besides answers.
    pub(crate) notices: Vec<Value>,
    /// What every question is answered.
    pub(crate) answer: Option<Value>,
}

impl Client {
    /// Starts a command and says hello.
    pub(crate) fn new(command: &mut Command) -> Self {
        Self::with(command, &json!({}))
    }

    /// Starts a command and says hello, with these capabilities.
    pub(crate) fn with(command: &mut Command, capabilities: &Value) -> Self {
        let mut client = Self::bare(command);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}});
        let begun = client.request("initialize", &params);
        assert_eq!(begun["result"]["protocolVersion"], "2025-11-25", "{begun}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// Starts a command.
    pub(crate) fn bare(command: &mut Command) -> Self {
        let (reader, stdout) = std::io::pipe().unwrap();
        let (stdin, input) = std::io::pipe().unwrap();
        let server = Server::spawn(command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)));
        // So that a process that ends ends its output.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let (sender, messages) = channel();
        thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { server, input: Some(input), messages, last_id: 0, notices: Vec::new(), answer: None }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The next message; none when there are no more. Anything else on the line fails the test.
    #[track_caller]
    pub(crate) fn message(&mut self) -> Option<Value> {
        match self.messages.recv_timeout(PATIENCE) {
            Ok(line) => Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(error) => panic!("{error}: {}", self.server.stderr()),
        }
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let Some(message) = self.message() else {
                panic!("no answer to {method}: {}", self.server.stderr());
            };
            if message.get("method").is_none() && message["id"] == id {
                return message;
            }
            if let (Some(result), Some(question)) = (&self.answer, message.get("id")) {
                let answer = json!({"jsonrpc": "2.0", "id": question, "result": result});
                self.send(&answer);
            }
            self.notices.push(message);
        }
    }

    /// Calls a tool, and gives its result.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    /// The names of all tools.
    #[track_caller]
    pub(crate) fn tools(&mut self) -> Vec<String> {
        let (mut names, mut params) = (Vec::new(), json!({}));
        loop {
            let page = self.request("tools/list", &params)["result"].clone();
            let tools = page["tools"].as_array().unwrap().iter();
            names.extend(tools.map(|tool| tool["name"].as_str().unwrap().to_owned()));
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return names,
            }
        }
    }

    /// Ends the input, and waits until the process has ended, well or not.
    pub(crate) fn leave(mut self) -> Self {
        drop(self.input.take());
        self.server.wait();
        self
    }

    /// Ends the input, and waits until the process has ended well; gives what was still said.
    #[track_caller]
    pub(crate) fn end(mut self) -> Vec<Value> {
        drop(self.input.take());
        let rest = std::iter::from_fn(|| self.message()).collect();
        let status = self.server.wait();
        assert!(status.success(), "{status}: {}", self.server.stderr());
        rest
    }
}

/// The receipt that a result names.
#[track_caller]
pub(crate) fn receipt_of(result: &Value) -> String {
    let receipt = result["_meta"]["chio"]["receiptId"].as_str();
    receipt.unwrap_or_else(|| panic!("{result}")).to_owned()
}
