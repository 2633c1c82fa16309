//! A stream of events as the body of an answer.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::events::{EventReader, Next, Priming};

/// How often a stream without events shows that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How a stream is sent.
pub(super) struct Sending {
    /// After how long the stream is closed for its client to come back.
    pub(super) rotate: Option<Duration>,
    /// How events are written for the client.
    pub(super) form: Priming,
    /// Cancelled when the stream has to end.
    pub(super) until: CancellationToken,
}

/// The events of a reader, as they come.
pub(super) fn stream(reader: EventReader, sending: Sending) -> Body {
    // Room for one: what a slow client does not take stays with the session, which is bounded.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(pump(reader, sending, sender));
    Body::new(Received(receiver).boxed_unsync())
}

async fn pump(mut reader: EventReader, sending: Sending, sender: mpsc::Sender<Bytes>) {
    // A client that has no number to go on from cannot come back.
    let rotate = sending.rotate.filter(|_| sending.form != Priming::Absent);
    let close_at = rotate.map(|rotate| Instant::now() + rotate);
    loop {
        let closing = async {
            match close_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let next = tokio::select! {
            biased;
            next = reader.next(sending.form) => next,
            () = sending.until.cancelled() => return,
            () = sender.closed() => return,
            () = closing => return,
            () = tokio::time::sleep(KEEP_ALIVE) => Next::Event(": still here\n\n".to_owned()),
        };
        let Next::Event(event) = next else { return };
        let sent = tokio::select! {
            sent = sender.send(Bytes::from(event)) => sent,
            () = sending.until.cancelled() => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

/// What is received, as a body.
struct Received(mpsc::Receiver<Bytes>);

impl HttpBody for Received {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(http_body::Frame::data(bytes))))
    }
}
