//! A bare connection: bytes in, bytes out, nothing done for the test.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use chio_core::capability::CapabilityToken;
use chio_core::frame::{self, Decoder};
use chio_core::message::{AgentMessage, KernelMessage, ToolCallRequest, ToolCallResponse};
use serde_json::Value;

/// How long an answer may take. Only a failing test waits for so long.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much is read at once.
const READ_SIZE: usize = 64 * 1024;

/// A connection to a server under test.
#[derive(Debug)]
pub struct Wire {
    stream: Stream,
    decoder: Decoder,
}

#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Wire {
    /// Connects to `unix:PATH` or `tcp:ADDRESS`.
    ///
    /// # Panics
    /// When no process listens there.
    #[must_use]
    pub fn connect(endpoint: &str) -> Self {
        let (kind, place) = endpoint.split_once(':').expect("an endpoint");
        if kind == "unix" {
            return Self::over(UnixStream::connect(place).expect("a connection"));
        }
        let stream = TcpStream::connect(place).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self { stream: Stream::Tcp(stream), decoder: Decoder::default() }
    }

    /// A connection over a socket that is there, such as one half of a pair.
    ///
    /// # Panics
    /// When it is closed.
    #[must_use]
    pub fn over(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self { stream: Stream::Unix(stream), decoder: Decoder::default() }
    }

    /// Sends a message.
    pub fn send(&mut self, message: &AgentMessage) {
        let bytes = frame::encode(message).expect("a message");
        self.send_bytes(&bytes).expect("an open connection");
    }

    /// Sends a call.
    pub fn send_call(&mut self, id: &str, token: &CapabilityToken, tool: &str, params: Value) {
        self.send_request(request(id, token, tool, params));
    }

    /// Sends a call that has more to it than a token.
    pub fn send_request(&mut self, request: ToolCallRequest) {
        self.send(&AgentMessage::ToolCallRequest(Box::new(request)));
    }

    /// Sends a payload that need not be a message.
    pub fn send_payload(&mut self, payload: &[u8]) {
        let bytes = frame::encode_payload(payload).expect("a payload");
        self.send_bytes(&bytes).expect("an open connection");
    }

    /// Sends bytes that need not be a frame.
    ///
    /// # Errors
    /// When the peer does not take them.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tcp(stream) => stream.write_all(bytes),
        }
    }

    /// Says that no more is sent; answers are still read.
    pub fn shut(&self) {
        let shut = match &self.stream {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
        };
        shut.expect("an open connection");
    }

    /// The payload of the next frame; none when the connection has ended.
    ///
    /// # Panics
    /// When neither happens.
    #[track_caller]
    pub fn payload(&mut self) -> Option<Vec<u8>> {
        loop {
            let payload = self.decoder.next_payload().expect("a frame");
            if let Some(payload) = payload {
                return Some(payload.to_vec());
            }
            let mut chunk = vec![0; READ_SIZE];
            let read = match &mut self.stream {
                Stream::Unix(stream) => stream.read(&mut chunk),
                Stream::Tcp(stream) => stream.read(&mut chunk),
            };
            match read {
                Ok(0) => return None,
                Ok(count) => self.decoder.feed(chunk.get(..count).unwrap_or_default()),
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
                    ) =>
                {
                    return None;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Interrupted, "nothing came: {error}");
                }
            }
        }
    }

    /// The next message; none when the connection has ended.
    #[track_caller]
    pub fn message(&mut self) -> Option<KernelMessage> {
        let payload = self.payload()?;
        Some(KernelMessage::decode(&payload).expect("a message of a kernel"))
    }

    /// The next message, which is a response.
    ///
    /// # Panics
    /// When it is not, or the connection has ended.
    #[track_caller]
    pub fn response(&mut self) -> ToolCallResponse {
        let message = self.message();
        let response = match message {
            Some(KernelMessage::ToolCallResponse(response)) => Ok(*response),
            other => Err(other),
        };
        response.expect("a response")
    }

    /// Calls a tool and waits for the response, which comes next.
    #[track_caller]
    pub fn call(
        &mut self,
        id: &str,
        token: &CapabilityToken,
        tool: &str,
        params: Value,
    ) -> ToolCallResponse {
        self.send_call(id, token, tool, params);
        self.response()
    }

    /// Whether the server still answers.
    #[track_caller]
    pub fn is_alive(&mut self) -> bool {
        self.send(&AgentMessage::Heartbeat);
        self.message() == Some(KernelMessage::Heartbeat)
    }
}

/// A call of `SERVER/TOOL`, or of a tool of the demo server.
#[must_use]
pub fn request(id: &str, token: &CapabilityToken, tool: &str, params: Value) -> ToolCallRequest {
    let (server_id, tool) = tool.split_once('/').unwrap_or(("demo", tool));
    ToolCallRequest::new(id, token.clone(), server_id, tool, params)
}
