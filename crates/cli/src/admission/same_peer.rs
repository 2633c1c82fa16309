//! Native connections: whoever reaches the door is one peer, or nobody in particular.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_cross_protocol::{
    Admission, ConnectionInfo, CrossProtocolOrchestrator, Log, Peer, Refused,
};

use crate::hand_out::HandOut;

/// Whoever reaches the door is this peer, or nobody in particular.
pub(crate) struct SamePeer {
    pub(crate) orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    pub(crate) peer: Option<PublicKey>,
    pub(crate) hand_out: Option<HandOut>,
    pub(crate) log: Log,
}

#[async_trait]
impl Admission for SamePeer {
    async fn admit(&self, connection: &ConnectionInfo) -> Result<Peer, Refused> {
        if let (Some(hand_out), Some(peer)) = (&self.hand_out, &self.peer)
            && let Err(error) = hand_out.tokens(peer).await
        {
            // Whoever is handed nothing can still come with a token of its own.
            self.log.line(&format!("the peer is handed nothing: {error:#}"));
        }
        let session = self.orchestrator.open_session(connection.protocol, self.peer.clone());
        Ok(Peer { subject: self.peer.clone(), session })
    }
}
