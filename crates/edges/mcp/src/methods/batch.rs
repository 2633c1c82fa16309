//! Several messages at once, as one version of the protocol has them: each is handled as if it had come
//! alone, so each call is judged and receipted by itself.

use std::sync::Arc;

use chio_net::jsonrpc::{Message, Rejected, Response};
use tokio::task::JoinSet;

use super::{Credentials, handle_notification, handle_request};
use crate::events::StreamId;
use crate::session::McpSession;

/// How many of these messages the kernel may be asked about.
pub(crate) fn counted(batch: &[Result<Message, Rejected>]) -> usize {
    let asks = |message: &&Result<Message, Rejected>| {
        matches!(message, Ok(Message::Request(_) | Message::Notification(_)))
    };
    batch.iter().filter(asks).count()
}

/// The messages of a batch while they are handled.
#[derive(Default)]
pub(crate) struct Batch {
    responses: JoinSet<Option<Response>>,
    notifications: JoinSet<()>,
}

impl Batch {
    /// Takes the messages in, in their order. All that is left to do is done at the same time.
    pub(crate) fn begin(
        session: &Arc<McpSession>,
        messages: Vec<Result<Message, Rejected>>,
        stream: StreamId,
        credentials: &Credentials,
    ) -> Self {
        let mut batch = Self::default();
        for message in messages {
            match message {
                Ok(Message::Request(request)) => {
                    let handled = handle_request(session, request, stream, credentials.clone());
                    batch.responses.spawn(handled);
                }
                Ok(Message::Notification(notification)) => {
                    if let Some(handled) = handle_notification(session, notification) {
                        batch.notifications.spawn(handled);
                    }
                }
                Ok(Message::Response(response)) => {
                    session.pending.resolve(response);
                }
                Err(rejected) => {
                    if let Some(answer) = rejected.into_answer() {
                        batch.responses.spawn(std::future::ready(Some(answer)));
                    }
                }
            }
        }
        batch
    }

    /// Whether nothing in it is answered.
    pub(crate) fn is_silent(&self) -> bool {
        self.responses.is_empty()
    }

    /// The next response, none for what was cancelled; when there is no other, all is done.
    pub(crate) async fn next(&mut self) -> Option<Response> {
        while let Some(response) = self.responses.join_next().await {
            if let Ok(Some(response)) = response {
                return Some(response);
            }
        }
        while self.notifications.join_next().await.is_some() {}
        None
    }
}
