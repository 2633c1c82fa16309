//! An agent that sends whatever bytes a test wants.

use std::sync::Arc;

use chio_core::frame::{self, Decoder};
use chio_core::message::{
    AgentMessage, KernelMessage, ToolCallRequest, ToolCallResponse, ToolCallResult,
};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{PATIENCE, World, options, request};
use crate::connection::{ConnectionOptions, serve_connection};
use crate::error::NativeError;

/// An agent at the end of a served connection.
pub(crate) struct Agent {
    pub(crate) stream: DuplexStream,
    decoder: Decoder,
    pub(crate) served: JoinHandle<Result<(), NativeError>>,
    pub(crate) shutdown: CancellationToken,
}

impl Agent {
    /// An agent whose connection holds this many bytes on their way.
    pub(crate) fn connect(world: &World, options: ConnectionOptions, bytes: usize) -> Self {
        let (stream, theirs) = tokio::io::duplex(bytes);
        let (reader, writer) = tokio::io::split(theirs);
        let shutdown = CancellationToken::new();
        let orchestrator = Arc::clone(&world.orchestrator);
        let serving = serve_connection(reader, writer, orchestrator, options, shutdown.clone());
        let served = tokio::spawn(serving);
        Self { stream, decoder: Decoder::default(), served, shutdown }
    }

    pub(crate) fn usual(world: &World) -> Self {
        Self::connect(world, options(None), 64 * 1024)
    }

    pub(crate) async fn send(&mut self, message: &AgentMessage) {
        self.send_bytes(&frame::encode(message).unwrap()).await;
    }

    pub(crate) async fn send_call(&mut self, request: ToolCallRequest) {
        self.send(&AgentMessage::ToolCallRequest(Box::new(request))).await;
    }

    pub(crate) async fn call(&mut self, id: &str, tool: &str, params: Value) {
        self.send_call(request(id, tool, params)).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        timeout(PATIENCE, self.stream.write_all(bytes)).await.unwrap().unwrap();
    }

    /// The next message, or none when the connection ends.
    pub(crate) async fn next(&mut self) -> Option<KernelMessage> {
        loop {
            if let Some(payload) = self.decoder.next_payload().unwrap() {
                return Some(KernelMessage::decode(payload).unwrap());
            }
            let mut bytes = [0; 4096];
            let count = timeout(PATIENCE, self.stream.read(&mut bytes)).await.unwrap().unwrap();
            if count == 0 {
                return None;
            }
            self.decoder.feed(&bytes[..count]);
        }
    }

    /// The next message, which is a response.
    pub(crate) async fn response(&mut self) -> ToolCallResponse {
        match self.next().await {
            Some(KernelMessage::ToolCallResponse(response)) => *response,
            other => panic!("expected a response, found {other:?}"),
        }
    }

    /// The ids and results of this many responses.
    pub(crate) async fn responses(&mut self, count: usize) -> Vec<(String, ToolCallResult)> {
        let mut responses = Vec::new();
        for _ in 0..count {
            let response = self.response().await;
            responses.push((response.id, response.result));
        }
        responses
    }

    /// How the connection was served.
    pub(crate) async fn ended(self) -> Result<(), String> {
        let Self { stream, served, .. } = self;
        let outcome = timeout(PATIENCE, served).await.unwrap().unwrap();
        drop(stream);
        outcome.map_err(|error| error.to_string())
    }
}
