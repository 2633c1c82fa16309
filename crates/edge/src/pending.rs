//! Requests that a server sent to its client, until the client responds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use chio_core::canonical::size;
use chio_cross_protocol::AskError;
use chio_net::jsonrpc::{RequestId, Response, RpcError};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

/// The most requests that are pending at once.
const MAX_PENDING: usize = 64;
/// The most characters of a client's error message that are passed on.
const MAX_MESSAGE: usize = 4096;

/// The most bytes of a client's error data that are passed on.
const MAX_DATA: usize = 64 << 10;

/// What came of a request.
type Answer = Result<Value, AskError>;

/// The requests to one client that it has not responded to.
#[derive(Debug, Default)]
pub struct PendingRequests {
    senders: Mutex<HashMap<RequestId, oneshot::Sender<Answer>>>,
    last_number: AtomicU64,
}

impl PendingRequests {
    /// Registers a request: its id, and where the answer arrives. None when too many are pending.
    pub fn register(&self) -> Option<(RequestId, oneshot::Receiver<Answer>)> {
        let mut senders = self.senders.lock();
        if senders.len() >= MAX_PENDING {
            return None;
        }
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let id = RequestId::from(format!("chio-{number}"));
        let (sender, receiver) = oneshot::channel();
        senders.insert(id.clone(), sender);
        Some((id, receiver))
    }

    /// Removes a request. True if it was still pending.
    pub fn remove(&self, id: &RequestId) -> bool {
        self.senders.lock().remove(id).is_some()
    }

    /// Passes a response to the task that waits for it. Drops one that matches no request.
    pub fn resolve(&self, response: Response) {
        let Some(sender) = self.senders.lock().remove(&response.id) else { return };
        let answer = match response.outcome {
            Ok(body) => Ok(body.into_value()),
            Err(RpcError { code, message, data }) => {
                let message = message.chars().take(MAX_MESSAGE).collect();
                let fits = |data: &Value| size(data).is_ok_and(|size| size.bytes <= MAX_DATA);
                Err(AskError::Answered { code, message, data: data.filter(fits).map(Box::new) })
            }
        };
        let _ = sender.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_response_reaches_the_request_that_it_names_once() {
        let pending = PendingRequests::default();
        let (first, mut first_answer) = pending.register().unwrap();
        let (second, mut second_answer) = pending.register().unwrap();
        assert_eq!((first.as_str(), second.as_str()), (Some("chio-1"), Some("chio-2")));
        pending.resolve(Response::ok(RequestId::from("chio-9".to_owned()), json!(0)));
        pending.resolve(Response::ok(second.clone(), json!(2)));
        assert_eq!(second_answer.try_recv().unwrap().unwrap(), json!(2));
        assert!(!pending.remove(&second), "it is answered");
        let long = RpcError::new(1, "x".repeat(MAX_MESSAGE + 1)).with_data(json!({"why": 7}));
        pending.resolve(Response::err(first, long));
        match first_answer.try_recv().unwrap() {
            Err(AskError::Answered { code: 1, message, data }) => {
                assert_eq!((message.len(), data), (MAX_MESSAGE, Some(Box::new(json!({"why": 7})))));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_number_of_pending_requests_is_bounded() {
        let pending = PendingRequests::default();
        let registered: Vec<_> = (0..MAX_PENDING).filter_map(|_| pending.register()).collect();
        assert_eq!(registered.len(), MAX_PENDING);
        assert!(pending.register().is_none());
        assert!(pending.remove(&registered[0].0));
        assert!(pending.register().is_some());
    }
}
