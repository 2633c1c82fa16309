//! An answer: whole, in pieces, or as a stream of events.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chio_core::strict::tree_size;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::{Instant, timeout, timeout_at};

use super::error::{ClientError, Phase};
use crate::address::Destination;
use crate::memory::HeldMemory;
use crate::sse::{Decoder, Event, SseLimits};

/// How many bytes of an answer, and of what it is read into, are not counted.
const FREE: usize = 64 << 10;

/// A whole answer.
#[derive(Clone)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Where it came from, after redirects.
    pub from: Destination,
    /// What the body takes, and what it is read into.
    pub(super) _held: Arc<HeldMemory>,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("from", &self.from)
            .field("body", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// An answer whose body is still coming. Dropping it ends the connection.
pub struct ResponseStream {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) from: Destination,
    pub(super) body: Incoming,
    pub(super) bounds: Bounds,
}

/// What is waited for, and how much is kept.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) deadline: Instant,
    pub(super) idle: Duration,
    pub(super) max_body: usize,
}

impl ResponseStream {
    /// The status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers.
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Where it came from, after redirects.
    pub const fn from(&self) -> &Destination {
        &self.from
    }

    /// Whether the body is of this type, whatever its parameters.
    #[must_use]
    pub fn is_type(&self, name: &str) -> bool {
        let value = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = value.and_then(|value| value.split(';').next());
        essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(name))
    }

    /// The next piece of the body; none at its end. Each piece has the idle timeout to come; how
    /// many come, the caller bounds.
    ///
    /// # Errors
    /// When none comes in time, or the connection breaks.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        let piece = timeout(self.bounds.idle, next_piece(&mut self.body, &self.from)).await;
        piece.map_err(|_| ClientError::TimedOut(Phase::Idle))?
    }

    /// The whole body, which must come within the request's deadline and bound.
    ///
    /// # Errors
    /// When it does not.
    pub async fn collect(mut self) -> Result<Response, ClientError> {
        let limit = self.bounds.max_body;
        let too_large = ClientError::BodyTooLarge { limit };
        // What is announced is refused before it comes.
        if self.body.size_hint().lower() > limit as u64 {
            return Err(too_large);
        }
        let (mut whole, mut held) = (BytesMut::new(), HeldMemory::of_process(FREE));
        let reading = async {
            loop {
                let piece = held.unless_cut_off(next_piece(&mut self.body, &self.from)).await??;
                let Some(piece) = piece else { break };
                if whole.len() + piece.len() > limit {
                    return Err(too_large);
                }
                held.grow(piece.len()).await?;
                whole.extend_from_slice(&piece);
            }
            held.arrived();
            Ok(held.grow(tree_size(&whole)).await?)
        };
        let read = timeout_at(self.bounds.deadline, reading).await;
        read.map_err(|_| ClientError::TimedOut(Phase::Body))??;
        let Self { status, headers, from, .. } = self;
        Ok(Response { status, headers, body: whole.freeze(), from, _held: Arc::new(held) })
    }

    /// The body as a stream of events.
    ///
    /// # Errors
    /// When it says that it is something else, or the status is not 200.
    pub fn events(self, limits: SseLimits) -> Result<EventStream, ClientError> {
        if self.status != StatusCode::OK {
            return Err(ClientError::EventStatus { status: self.status.as_u16() });
        }
        if !self.is_type("text/event-stream") {
            return Err(ClientError::NotEvents);
        }
        let (decoder, ready) = (Decoder::new(limits), VecDeque::new());
        let held = HeldMemory::of_process(FREE);
        Ok(EventStream { response: self, decoder, ready, held, left: usize::MAX, most: usize::MAX })
    }
}

async fn next_piece(body: &mut Incoming, from: &Destination) -> Result<Option<Bytes>, ClientError> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ClientError::Protocol {
            host: from.host(),
            found: "a body that breaks off",
        })?;
        // Trailers say nothing that a caller here asks for.
        if let Ok(piece) = frame.into_data() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

impl fmt::Debug for ResponseStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseStream")
            .field("status", &self.status)
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

/// A stream of events. Dropping it ends the connection.
#[derive(Debug)]
pub struct EventStream {
    response: ResponseStream,
    decoder: Decoder,
    ready: VecDeque<Event>,
    /// What has come of events that were not given out, and the trees that they are read into.
    held: HeldMemory,
    /// Bytes that may still come, of this many in all.
    left: usize,
    most: usize,
}

impl EventStream {
    /// The same, of at most this many bytes, comments and all.
    #[must_use]
    pub fn of_at_most(self, bytes: usize) -> Self {
        Self { left: bytes, most: bytes, ..self }
    }

    /// The next event; none at the end of the stream. Comments count as signs of life.
    ///
    /// # Errors
    /// When nothing comes in time, the connection breaks, or an event is too large.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let piece = self.held.unless_cut_off(self.response.chunk()).await??;
            let Some(piece) = piece else { return Ok(None) };
            let left = self.left.checked_sub(piece.len());
            self.left = left.ok_or(ClientError::BodyTooLarge { limit: self.most })?;
            self.ready.extend(self.decoder.feed(&piece)?);
            let events = self.ready.iter().map(|event| tree_size(event.data.as_bytes()));
            let size = events.fold(self.decoder.held(), usize::saturating_add);
            if self.held.has_arrived() || !self.ready.is_empty() {
                self.held.clear();
            }
            if !self.ready.is_empty() {
                self.held.arrived();
            }
            self.held.resize(size).await?;
        }
    }

    /// The headers of the answer.
    pub const fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The last id that the stream gave, to go on from.
    pub fn last_id(&self) -> Option<&str> {
        self.decoder.last_id()
    }

    /// After how many milliseconds the stream last asked to connect again.
    pub const fn last_retry(&self) -> Option<u64> {
        self.decoder.last_retry()
    }
}
