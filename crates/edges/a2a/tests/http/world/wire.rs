//! Requests as they go over the wire, and what comes back.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long an answer may take. Only a failing test waits for so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request.
pub(crate) struct Ask {
    address: SocketAddr,
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Ask {
    pub(crate) fn new(address: SocketAddr, method: &'static str, path: &str) -> Self {
        let (path, body, headers) = (path.to_owned(), String::new(), Vec::new());
        Self { address, method, path, headers, body }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn text(mut self, body: &str) -> Self {
        self.body = body.to_owned();
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.text(&body.to_string()).with("Content-Type", "application/json")
    }

    fn head(&self) -> String {
        let host = self.headers.iter().any(|(name, _)| name == "Host");
        let host = if host { String::new() } else { format!("Host: {}\r\n", self.address) };
        let headers: String =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!(
            "{} {} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {}\r\n{headers}\r\n",
            self.method,
            self.path,
            self.body.len()
        )
    }

    /// Sends it, and leaves without waiting for the answer.
    pub(crate) async fn leave(self) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(self.head().as_bytes()).await.unwrap();
        stream.write_all(self.body.as_bytes()).await.unwrap();
        stream
    }

    pub(crate) async fn send(self) -> Answer {
        let mut stream = self.leave().await;
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
        read.expect("an answer in time").unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers =
            headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        Answer { status, headers, body: body.to_owned() }
    }
}

impl Answer {
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("JSON: {:?}", self.body))
    }

    /// The result of a message of JSON-RPC.
    #[track_caller]
    pub(crate) fn result(self) -> Value {
        let answer = self.is(200).value();
        assert_eq!(answer["id"], 7);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The error of a message of JSON-RPC, with this code.
    #[track_caller]
    pub(crate) fn error(self, code: i64) -> Value {
        let answer = self.is(200).value();
        assert!(answer.get("result").is_none(), "{answer}");
        assert_eq!(answer["error"]["code"], code, "{answer}");
        answer["error"].clone()
    }
}
