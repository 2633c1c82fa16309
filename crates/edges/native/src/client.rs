//! The agent's end of a native connection.

mod waiting;

use std::fmt;
use std::io;
use std::sync::Arc;

use chio_core::capability::CapabilityToken;
use chio_core::frame::FrameError;
use chio_core::message::{AgentMessage, KernelMessage, ToolCallRequest, ToolCallResponse};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::broadcast;
use tokio::task::JoinSet;

use self::waiting::{Event, Waiting};
use crate::frames::FrameReader;
use crate::outbox::{Outbox, SendError};
use chio_edge::Endpoint;

/// How many bytes of requests wait to be written.
const MAX_QUEUED: usize = 1024 * 1024;
/// How many revocations are kept for a caller that does not look.
const KEPT_REVOCATIONS: usize = 256;

/// Why a kernel did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no kernel there.
    #[error("cannot connect to `{endpoint}`: {problem}")]
    Connect {
        /// The endpoint that was tried.
        endpoint: String,
        /// The system's error.
        problem: String,
    },
    /// The connection ended first.
    #[error("the connection ended: {0}")]
    Closed(String),
    /// A call with this id is running; answers could not be told apart.
    #[error("expected an id that no running call has, found `{0}`")]
    DuplicateId(String),
    /// The message cannot be written.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// A connection to a kernel. Clones share it; it ends with the last of them.
///
/// Many calls may run at once. Nothing that comes back is verified unless asked for: a response
/// has its receipt, and a receipt verifies itself.
#[derive(Clone)]
pub struct NativeClient {
    shared: Arc<ClientState>,
    /// Ends reading and writing when the last clone goes.
    _tasks: Arc<JoinSet<()>>,
}

struct ClientState {
    outbox: Outbox,
    waiting: Waiting,
    revoked: broadcast::Sender<String>,
}

impl NativeClient {
    /// Connects to a kernel.
    ///
    /// # Errors
    /// When no kernel answers there.
    pub async fn connect(endpoint: &Endpoint) -> Result<Self, ClientError> {
        let connected: io::Result<Self> = async {
            Ok(match endpoint {
                Endpoint::Unix(path) => {
                    let (reader, writer) = UnixStream::connect(path).await?.into_split();
                    Self::over(reader, writer)
                }
                Endpoint::Tcp(address) => {
                    let stream = TcpStream::connect(address).await?;
                    stream.set_nodelay(true)?;
                    let (reader, writer) = stream.into_split();
                    Self::over(reader, writer)
                }
            })
        }
        .await;
        connected.map_err(|error| ClientError::Connect {
            endpoint: endpoint.to_string(),
            problem: error.to_string(),
        })
    }

    /// A connection over any pair of byte streams, such as a child's output and input.
    pub fn over<R, W>(reader: R, writer: W) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let shared = Arc::new(ClientState {
            outbox: Outbox::new(MAX_QUEUED),
            waiting: Waiting::default(),
            revoked: broadcast::Sender::new(KEPT_REVOCATIONS),
        });
        let mut tasks = JoinSet::new();
        let reading = Arc::clone(&shared);
        tasks.spawn(async move { reading.read(FrameReader::new(reader)).await });
        let writing = Arc::clone(&shared);
        tasks.spawn(async move {
            if let Err(error) = writing.outbox.write_to(writer).await {
                writing.close(&error.to_string());
            }
        });
        Self { shared, _tasks: Arc::new(tasks) }
    }

    /// Calls a tool. Chunks are handed over as they come, each with its index.
    ///
    /// # Errors
    /// When there is no answer. A denial is one.
    pub async fn call(
        &self,
        request: ToolCallRequest,
        mut on_chunk: impl FnMut(u64, Value),
    ) -> Result<ToolCallResponse, ClientError> {
        let mut events = self.shared.waiting.call(&request.id)?;
        self.send(&AgentMessage::ToolCallRequest(Box::new(request))).await?;
        loop {
            match events.next().await {
                Some(Event::Chunk(index, data)) => on_chunk(index, data),
                Some(Event::Response(response)) => return Ok(*response),
                None => return Err(self.shared.waiting.closed()),
            }
        }
    }

    /// The capabilities of this agent that are valid now, as far as the kernel knows who it is.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn list_capabilities(&self) -> Result<Vec<CapabilityToken>, ClientError> {
        let answer = self.shared.waiting.list()?;
        self.send(&AgentMessage::ListCapabilities).await?;
        answer.await.map_err(|_| self.shared.waiting.closed())
    }

    /// Asks for a sign of life.
    ///
    /// # Errors
    /// When there is none.
    pub async fn heartbeat(&self) -> Result<(), ClientError> {
        let answer = self.shared.waiting.heartbeat()?;
        self.send(&AgentMessage::Heartbeat).await?;
        answer.await.map_err(|_| self.shared.waiting.closed())
    }

    /// Ids of capabilities that the kernel says are revoked, from now on.
    pub fn revocations(&self) -> broadcast::Receiver<String> {
        self.shared.revoked.subscribe()
    }

    async fn send(&self, message: &AgentMessage) -> Result<(), ClientError> {
        match self.shared.outbox.send(message).await {
            Ok(()) => Ok(()),
            Err(SendError::Frame(error)) => Err(error.into()),
            Err(SendError::Closed) => Err(self.shared.waiting.closed()),
        }
    }
}

impl ClientState {
    /// Hands on what arrives until nothing more does.
    async fn read<R: AsyncRead + Unpin>(&self, mut frames: FrameReader<R>) {
        let problem = loop {
            match self.read_some(&mut frames).await {
                Ok(true) => {}
                Ok(false) => break "the kernel closed it".to_owned(),
                Err(problem) => break problem,
            }
        };
        self.close(&problem);
    }

    async fn read_some<R: AsyncRead + Unpin>(
        &self,
        frames: &mut FrameReader<R>,
    ) -> Result<bool, String> {
        while let Some(payload) = frames.next_payload().map_err(|error| error.to_string())? {
            match KernelMessage::decode(&payload).map_err(|error| error.to_string())? {
                KernelMessage::ToolCallChunk { id, chunk_index, data } => {
                    self.waiting.chunk(&id, chunk_index, data).await;
                }
                KernelMessage::ToolCallResponse(response) => self.waiting.response(response).await,
                KernelMessage::CapabilityList { capabilities } => self.waiting.listed(capabilities),
                KernelMessage::CapabilityRevoked { id } => {
                    // No caller has to look.
                    let _ = self.revoked.send(id);
                }
                KernelMessage::Heartbeat => self.waiting.alive(),
            }
        }
        if frames.fill().await.map_err(|error| error.to_string())? {
            return Ok(true);
        }
        frames.finish().map(|()| false).map_err(|error| error.to_string())
    }

    fn close(&self, problem: &str) {
        self.waiting.close(problem);
        self.outbox.break_off();
    }
}

impl fmt::Debug for NativeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeClient").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::world::request;

    #[tokio::test]
    async fn a_kernel_that_talks_nonsense_is_left() {
        let heartbeat = b"\0\0\0\x14{\"type\":\"heartbeat\"}";
        let cases: [(&[u8], &str); 5] = [
            (&[255; 4], "message_too_large"),
            (b"\0\0\0\x02[]", "expected a JSON object"),
            (b"\0\0\0\x1c{\"type\":\"list_capabilities\"}", "list_capabilities"),
            (&heartbeat[..7], "connection_closed"),
            (heartbeat, "the kernel closed it"),
        ];
        for (bytes, expected) in cases {
            let (mut kernel, ours) = tokio::io::duplex(4096);
            let (reader, writer) = tokio::io::split(ours);
            let client = NativeClient::over(reader, writer);
            let call = client.call(request("r", "echo", Value::Null), |_, _| ());
            let (outcome, ()) = tokio::join!(call, async {
                kernel.write_all(bytes).await.unwrap();
                kernel.shutdown().await.unwrap();
            });
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            // Every later caller hears the same.
            assert_eq!(client.heartbeat().await.unwrap_err().to_string(), error);
        }
    }

    #[tokio::test]
    async fn a_message_that_fits_no_frame_is_not_sent() {
        let (_kernel, ours) = tokio::io::duplex(4096);
        let (reader, writer) = tokio::io::split(ours);
        let client = NativeClient::over(reader, writer);
        let large = Value::String("x".repeat(chio_core::frame::MAX_PAYLOAD));
        for _ in 0..2 {
            let outcome = client.call(request("r", "echo", large.clone()), |_, _| ()).await;
            assert!(matches!(outcome, Err(ClientError::Frame(_))), "{outcome:?}");
        }
    }
}
