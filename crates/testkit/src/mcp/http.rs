//! HTTP/1.1 by hand: these bytes go out, those come in, and nothing is done for the test.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// How long bytes may take. Only a failing test waits for so long.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much is read at once.
const READ_SIZE: usize = 64 * 1024;

/// A request, to `/mcp` unless it says otherwise.
#[derive(Debug, Clone)]
pub struct Request {
    method: &'static str,
    path: &'static str,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn new(method: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { method, path: "/mcp", headers: Vec::new(), body: body.into() }
    }

    /// A message, with the headers that every client sends.
    pub fn post(message: &Value) -> Self {
        Self::post_bytes(message.to_string())
    }

    /// A body that need not be a message.
    pub fn post_bytes(body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", body)
            .with("Accept", "application/json, text/event-stream")
            .with("Content-Type", "application/json")
    }

    /// Asks for a stream.
    pub fn get() -> Self {
        Self::new("GET", "").with("Accept", "text/event-stream")
    }

    /// Ends a session.
    pub fn delete() -> Self {
        Self::new("DELETE", "")
    }

    /// Asks with another method.
    pub fn other(method: &'static str) -> Self {
        Self::new(method, "")
    }

    /// The same to another path.
    pub const fn at(mut self, path: &'static str) -> Self {
        self.path = path;
        self
    }

    /// The same by another method.
    #[must_use]
    pub const fn by(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    /// The same with this header, in place of one of that name.
    pub fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    /// The same with one more header, also when there is one of that name.
    pub fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same without the headers of this name.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// What is sent to the server at this address.
    #[must_use]
    pub fn bytes(&self, address: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !self.has("Host") {
            head.push_str(&format!("Host: {address}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", self.body.len()));
        [head.as_bytes(), &self.body].concat()
    }
}

/// A connection. It carries one request after the other.
#[derive(Debug)]
pub struct Wire {
    address: String,
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Wire {
    /// Connects to an address.
    #[must_use]
    pub fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        Self { address: address.to_owned(), stream, unread: Vec::new() }
    }

    /// Sends a request, and reads nothing.
    pub fn send_only(self, request: &Request) -> Self {
        self.send_part(request, usize::MAX)
    }

    /// Sends this many bytes of a request, and reads nothing.
    pub fn send_part(mut self, request: &Request, most: usize) -> Self {
        let whole = request.bytes(&self.address);
        let part = whole.get(..most).unwrap_or(&whole);
        self.stream.write_all(part).expect("an open connection");
        self
    }

    /// Sends a request and reads the head of its answer.
    #[track_caller]
    pub fn send(mut self, request: &Request) -> Answer {
        // A server need not read to the end what it refuses.
        let _ = self.stream.write_all(&request.bytes(&self.address));
        let status = self.line().expect("an answer");
        let code = status.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
        let status = code.and_then(|code| code.parse().ok()).expect("a status");
        let mut headers = Vec::new();
        loop {
            let line = self.line().expect("a header");
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut answer = Answer { status, headers, wire: self, left: Left::Bytes(0) };
        answer.left = match (answer.header("content-length"), answer.header("transfer-encoding")) {
            (Some(length), None) => Left::Bytes(length.parse().expect("a length")),
            (None, Some(encoding)) => {
                assert_eq!(encoding, "chunked");
                Left::Chunks
            }
            (None, None) if matches!(status, 204 | 304) => Left::Bytes(0),
            other => panic!("expected a length or chunks, found {other:?}"),
        };
        answer
    }

    /// Reads more; tells whether there was more.
    #[track_caller]
    fn fill(&mut self) -> bool {
        let mut chunk = vec![0; READ_SIZE];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return false,
                Ok(count) => {
                    self.unread.extend_from_slice(chunk.get(..count).unwrap_or_default());
                    return true;
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => return false,
                    _ => panic!("nothing came: {error}"),
                },
            }
        }
    }

    /// A line without its end; none when the connection has ended.
    #[track_caller]
    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.unread.drain(..end + 2).take(end).collect();
                return Some(String::from_utf8(line).expect("text"));
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// This many bytes; none when the connection has ended before them.
    #[track_caller]
    fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.unread.len() < count {
            if !self.fill() {
                return None;
            }
        }
        Some(self.unread.drain(..count).collect())
    }
}

/// An answer, whose body may still come.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    headers: Vec<(String, String)>,
    wire: Wire,
    left: Left,
}

/// What of a body is left.
#[derive(Debug)]
enum Left {
    Bytes(usize),
    Chunks,
    /// The connection ended before the body.
    Broken,
}

impl Answer {
    /// The header of this name, in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The next piece of the body; none at its end.
    #[track_caller]
    pub fn piece(&mut self) -> Option<Vec<u8>> {
        let piece = match self.left {
            Left::Bytes(0) | Left::Broken => return None,
            Left::Bytes(left) => self.wire.exactly(left),
            Left::Chunks => self.chunk(),
        };
        let ended = piece.as_ref().is_some_and(Vec::is_empty);
        if piece.is_none() {
            self.left = Left::Broken;
        } else if ended || matches!(self.left, Left::Bytes(_)) {
            self.left = Left::Bytes(0);
        }
        piece.filter(|_| !ended)
    }

    fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.wire.line()?;
        let size = usize::from_str_radix(&size, 16).expect("the size of a chunk");
        let chunk = self.wire.exactly(size)?;
        assert_eq!(self.wire.exactly(2)?, b"\r\n");
        Some(chunk)
    }

    /// The rest of the body.
    #[track_caller]
    pub fn text(&mut self) -> String {
        let mut bytes = Vec::new();
        while let Some(piece) = self.piece() {
            bytes.extend(piece);
        }
        assert!(!matches!(self.left, Left::Broken), "the body broke off");
        String::from_utf8(bytes).expect("text")
    }

    /// The body, which is JSON.
    #[track_caller]
    pub fn json(&mut self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text:?}"))
    }

    /// The same, if it has this status.
    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        self.check_for(status, "an answer")
    }

    /// The same, if what was asked is answered with this status.
    #[track_caller]
    pub fn check_for(mut self, status: u16, what: &str) -> Self {
        if self.status != status {
            let (found, text) = (self.status, self.text());
            panic!("{what}: expected {status}, found {found}: {text}");
        }
        self
    }

    /// The connection, for another request. The body has to be read.
    #[track_caller]
    pub fn into_wire(mut self) -> Wire {
        self.text();
        self.wire
    }
}
