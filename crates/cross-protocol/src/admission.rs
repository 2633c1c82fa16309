//! Who is at the other end of a connection.

use std::net::SocketAddr;

use async_trait::async_trait;
use chio_core::capability::PresentedToken;
use chio_core::crypto::PublicKey;
use chio_kernel::Session;

use crate::DiscoveryProtocol;

/// The door that a connection came in by, and what the operating system says about the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Door {
    /// Standard input and output: whoever started the process.
    Stdio,
    /// A Unix socket.
    Unix {
        /// The user at the other end.
        user: Option<u32>,
        /// The process at the other end.
        process: Option<i32>,
    },
    /// A TCP socket.
    Tcp {
        /// Where from.
        from: SocketAddr,
    },
}

/// A connection that somebody has to be admitted on.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectionInfo {
    /// What is spoken.
    pub protocol: DiscoveryProtocol,
    /// How it came in.
    pub door: Door,
    /// Who they have shown to be, where the door asks.
    pub principal: Option<String>,
    /// A capability that they came with.
    pub presented: Option<PresentedToken>,
}

impl ConnectionInfo {
    /// Somebody of whom only the door is known.
    #[must_use]
    pub const fn new(protocol: DiscoveryProtocol, door: Door) -> Self {
        Self { protocol, door, principal: None, presented: None }
    }
}

/// Somebody who was admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The key that they have shown to hold; calls with tokens of another subject are denied.
    /// Without one, each token speaks for its own subject.
    pub subject: Option<PublicKey>,
    /// The session that their calls belong to.
    pub session: Session,
}

/// Why somebody was not admitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not admitted: {0}")]
pub struct Refused(pub String);

/// Decides who is at the other end. The binary implements it.
#[async_trait]
pub trait Admission: Send + Sync {
    /// Who this is.
    ///
    /// # Errors
    /// When they may not come in.
    async fn admit(&self, connection: &ConnectionInfo) -> Result<Peer, Refused>;

    /// What somebody may do who was admitted, where the protocol carries no tokens: the best
    /// first.
    ///
    /// # Errors
    /// When nobody can say.
    async fn tokens(&self, _peer: &Peer) -> Result<Vec<PresentedToken>, Refused> {
        Ok(Vec::new())
    }
}
