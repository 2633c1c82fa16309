//! How messages reach a client: as events of streams, or as lines.

use std::sync::Arc;

use chio_edge::lines::LineSender;

use crate::events::{EventLog, StreamId};

/// How messages reach a client.
#[derive(Debug, Clone)]
pub(crate) enum Outlet {
    /// Over HTTP: each message belongs to a stream.
    Events(Arc<EventLog>),
    /// Over standard output: each message is a line.
    Lines(LineSender),
}

impl Outlet {
    /// Sends a message. A droppable one is dropped when the client reads too slowly.
    pub(crate) fn send(&self, stream: StreamId, text: String, droppable: bool) {
        match self {
            Self::Events(log) => log.send(stream, &text, droppable),
            Self::Lines(lines) => lines.send(text, droppable),
        }
    }

    /// Sends a message as soon as the client has room for it. False when the client is gone.
    pub(crate) async fn send_in_time(&self, stream: StreamId, text: String) -> bool {
        match self {
            Self::Events(log) => log.send_in_time(stream, &text).await,
            Self::Lines(lines) => lines.send_when_ready(text).await,
        }
    }
}
