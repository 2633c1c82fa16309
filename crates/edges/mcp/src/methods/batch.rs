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

/// Handles the messages of a batch in their order. The requests run at the same time; their responses
/// come out, none for what was cancelled, and those to messages that were not understood.
pub(crate) async fn begin(
    session: &Arc<McpSession>,
    batch: Vec<Result<Message, Rejected>>,
    stream: StreamId,
    credentials: Credentials,
) -> JoinSet<Option<Response>> {
    let mut responses = JoinSet::new();
    for message in batch {
        match message {
            Ok(Message::Request(request)) => {
                let (session, credentials) = (Arc::clone(session), credentials.clone());
                responses.spawn(async move {
                    handle_request(&session, request, stream, credentials).await
                });
            }
            Ok(Message::Notification(notification)) => {
                handle_notification(session, notification).await;
            }
            Ok(Message::Response(response)) => {
                session.pending.resolve(response);
            }
            Err(rejected) => {
                if let Some(answer) = rejected.into_answer() {
                    responses.spawn(std::future::ready(Some(answer)));
                }
            }
        }
    }
    responses
}
