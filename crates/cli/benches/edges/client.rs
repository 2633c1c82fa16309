//! A load client that costs little: one connection for each session, requests written as bytes,
//! answers read only as far as their ends.

use std::io;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One session on a connection of its own.
pub(crate) struct Session {
    stream: TcpStream,
    address: SocketAddr,
    id: Option<String>,
    buffer: Vec<u8>,
    calls: u64,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    session: Option<String>,
    pub(crate) body: String,
}

impl Session {
    /// Connects, without a word.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, address, id: None, buffer: Vec::with_capacity(16 << 10), calls: 0 }
    }

    /// Goes on over a new connection: servers close those that no client uses for a while.
    pub(crate) async fn reconnect(&mut self) {
        let Self { stream, buffer, .. } = Self::connect(self.address).await;
        (self.stream, self.buffer) = (stream, buffer);
    }

    /// Connects and opens a session.
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let mut session = Self::connect(address).await;
        let client = json!({"name": "load", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let answer = session.request("initialize", &params).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        session.id = answer.session;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let answer = session.post(&ready).await;
        assert_eq!(answer.status, 202, "{}", answer.body);
        session
    }

    async fn request(&mut self, method: &str, params: &Value) -> Answer {
        self.try_request(method, params).await.unwrap()
    }

    /// A request, by a client that may be cut off.
    pub(crate) async fn try_request(&mut self, method: &str, params: &Value) -> io::Result<Answer> {
        self.calls += 1;
        let id = self.calls;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.try_post_to("/mcp", &self.session(), &message).await
    }

    /// Calls a tool, and looks whether it ran.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &Value) {
        let answer =
            self.request("tools/call", &json!({"name": tool, "arguments": arguments})).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(!answer.body.contains("\"isError\":true"), "{}", answer.body);
        assert!(answer.body.contains("\"result\""), "{}", answer.body);
    }

    async fn post(&mut self, message: &Value) -> Answer {
        self.post_to("/mcp", &self.session(), message).await
    }

    /// The header that names the session.
    fn session(&self) -> String {
        let session = self.id.as_ref().map(|id| format!("MCP-Session-Id: {id}\r\n"));
        session.unwrap_or_default()
    }

    /// Posts a message, with more headers.
    pub(crate) async fn post_to(&mut self, path: &str, headers: &str, message: &Value) -> Answer {
        self.try_post_to(path, headers, message).await.unwrap()
    }

    async fn try_post_to(
        &mut self,
        path: &str,
        headers: &str,
        message: &Value,
    ) -> io::Result<Answer> {
        let body = message.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n\
             {body}",
            self.address,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.read().await
    }

    async fn fill(&mut self) -> io::Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    async fn read(&mut self) -> io::Result<Answer> {
        let head = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            self.fill().await?;
        };
        let text = String::from_utf8_lossy(&self.buffer[..head]).into_owned();
        let status = text.get(9..12).and_then(|it| it.parse().ok()).unwrap_or_default();
        let header = |name: &str| {
            text.lines().find_map(|line| {
                let (found, value) = line.split_once(':')?;
                found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let session = header("mcp-session-id");
        let (end, body) = if header("transfer-encoding").is_some() {
            loop {
                // The last chunk is empty; events never have this text.
                // It may also be the only one, right behind the head.
                if let Some(end) = find(&self.buffer[head - 2..], b"\r\n0\r\n\r\n") {
                    let end = head - 2 + end + 7;
                    break (end, String::from_utf8_lossy(&self.buffer[head..end]).into_owned());
                }
                self.fill().await?;
            }
        } else {
            let length: usize =
                header("content-length").and_then(|it| it.parse().ok()).unwrap_or_default();
            while self.buffer.len() < head + length {
                self.fill().await?;
            }
            let end = head + length;
            (end, String::from_utf8_lossy(&self.buffer[head..end]).into_owned())
        };
        self.buffer.drain(..end);
        Ok(Answer { status, session, body })
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
