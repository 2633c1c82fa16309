//! What an edge is: one protocol that agents speak, and the list entry that a binary has of it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use chio_core::principal::Principal;
use chio_cross_protocol::{Admission, ApprovalRequest, CrossProtocolOrchestrator};
use chio_net::places::Place;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::auth::HttpAuth;
use crate::settings::{Setting, SettingError, Settings};

/// One protocol, while it is served. It decodes, hands calls to the orchestrator, and encodes.
#[async_trait]
pub trait Edge: Send + Sync {
    /// Routes for an HTTP listener; none for a protocol that is not spoken over HTTP. Requests carry
    /// the address of the client as the extension [`chio_net::serve::ClientAddress`].
    fn routes(&self, _auth: Arc<HttpAuth>) -> Option<Router> {
        None
    }

    /// Serves one connection over a pair of byte streams until its input ends, or `shutdown`.
    ///
    /// # Errors
    /// With what ended the connection early, or when the protocol is not spoken over streams.
    async fn serve_streams(
        &self,
        _streams: Streams,
        _shutdown: CancellationToken,
    ) -> Result<(), StreamError> {
        Err(io::Error::from(io::ErrorKind::Unsupported).into())
    }

    /// How many connections over streams are served at once. For a further one, one goes for which
    /// nothing runs; without one, it waits.
    fn max_connections(&self) -> usize {
        256
    }

    /// Host and port by which clients reach the edge, where its settings name them.
    fn public_host(&self) -> Option<String> {
        None
    }

    /// Ends: accepts nothing new, lets running calls finish for a few seconds, then cancels them.
    async fn close(&self) {}
}

/// An edge that was started, or the setting that is wrong.
pub type StartResult = Result<Arc<dyn Edge>, SettingError>;

/// Why a connection over streams ended early.
pub type StreamError = Box<dyn std::error::Error + Send + Sync>;

/// One connection over a pair of byte streams.
pub struct Streams {
    /// What the client sends.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// What the client receives.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// The client, as far as the transport knows it.
    pub principal: Principal,
    /// The connection's place among others. The edge tells it what it does, since only it knows.
    pub place: Arc<Place>,
}

/// What an edge is served over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// HTTP, with other edges on the same listener.
    Http,
    /// A Unix socket or TCP on this machine, each for one edge. Its clients are not authenticated, so
    /// each of their calls has to carry its capability.
    Socket,
    /// Standard input and output, for one edge and the process that started this one.
    Stdio,
}

/// An entry of the list of edges.
#[derive(Debug)]
pub struct EdgeKind {
    /// The name of its configuration section.
    pub name: &'static str,
    /// What the log says before the address that it is served at.
    pub announcement: &'static str,
    /// Where clients find it, below the address of an HTTP listener.
    pub path: &'static str,
    /// What `chio up` says about its address, besides who is admitted; may be empty.
    pub address_hint: &'static str,
    /// What it can be served over.
    pub carriers: &'static [Carrier],
    /// Whether clients with a capability that was revoked or has expired are admitted, so that each
    /// of their calls is denied with a receipt.
    pub admits_ended: bool,
    /// The listener that it is on when nothing is configured.
    pub default_listener: &'static str,
    /// Whether its clients can ask their own user to approve a call.
    pub asks_users: bool,
    /// The keys of its configuration section.
    pub settings: &'static [Setting],
    /// Checks its settings before anything is started; the address is that of its HTTP listener.
    pub check: fn(&Settings, Option<SocketAddr>) -> Result<(), SettingError>,
    /// Starts it.
    pub start: fn(EdgeContext, &Settings) -> StartResult,
}

/// What an edge is started with.
pub struct EdgeContext {
    /// Where calls go.
    pub orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    /// Admits principals, and issues their capabilities.
    pub admission: Arc<dyn Admission>,
    /// The tool servers that are offered, by id, in order.
    pub servers: Vec<String>,
    /// `http://ADDRESS:PORT` of the HTTP listener; empty for streams.
    pub base_url: String,
    /// Takes the answers of clients' users to approval requests, where the kernel trusts them.
    pub user_approvals: Option<Arc<dyn UserApprovals>>,
    /// The options by which a command of an operator finds the store in any folder; none where
    /// no other process has it.
    pub store_options: Option<String>,
}

/// Answers approval requests with the decision of the client's own user. The binary implements it.
#[async_trait]
pub trait UserApprovals: Send + Sync {
    /// Whether the client's user may decide this request: policy has to say so.
    fn may_ask(&self, request: &ApprovalRequest) -> bool;

    /// Records the decision.
    ///
    /// # Errors
    /// When it cannot be recorded; then the request keeps waiting.
    async fn answer(&self, request: &ApprovalRequest, approved: bool) -> Result<(), String>;
}
