//! One connection, from its first frame to its last answer.

use std::borrow::Cow;
use std::mem::take;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use chio_core::capability::{CapabilityToken, PresentedToken};
use chio_core::crypto::PublicKey;
use chio_core::frame::FrameError;
use chio_core::message::{KernelMessage, ReceivedMessage, TokenCache, ToolCallRequest};
use chio_core::strict::tree_size;
use chio_core::with_defaults;
use chio_cross_protocol::{CrossProtocolOrchestrator, Session};
use chio_edge::Place;
use chio_net::memory::HeldMemory;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::broadcast;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::bridge::NativeBridge;
use crate::caller::{Link, NativeCaller};
use crate::error::NativeError;
use crate::frames::FrameReader;
use crate::known_tokens::{KnownTokens, rests_on};
use crate::outbox::{Outbox, SendError};

/// How many bytes are read ahead when there is no room for another call, so that the end of the
/// connection is noticed.
const READ_AHEAD: usize = 64 * 1024;

/// How many bytes of what a message is read into are not counted.
const FREE: usize = 32 * 1024;

/// What a token is taken to weigh that did not come in a message, in bytes.
const USUAL_TOKEN: usize = 2048;

with_defaults! {
    /// How much one connection may ask for at once.
    #[derive(Debug, Clone)]
    pub struct Limits {
        /// How many calls run at once. Beyond, nothing is read until one ends or waits for an
        /// approval.
        pub max_in_flight: usize = 64,
        /// How large the messages of those calls may be together, and again those of calls that
        /// wait for an approval. One call always runs.
        pub max_in_flight_bytes: usize = 64 * 1024 * 1024,
        /// How many bytes of answers wait for a reader that is slow. Beyond, calls wait.
        pub max_queued_bytes: usize = 1024 * 1024,
        /// How long answers may still take to leave when the connection has to end.
        pub linger: Duration = Duration::from_secs(5),
        /// How long a message that has begun may take to arrive.
        pub arrival: Duration = Duration::from_secs(30),
        /// How long the first message of a client over a socket may take to begin.
        pub first: Duration = Duration::from_secs(30),
    }
}

/// What the end of input between two frames means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnEof {
    /// The agent is gone: its calls are cancelled. This is how sockets are served.
    #[default]
    Cancel,
    /// The agent has no more to ask: its calls end as they do and are answered. This is how
    /// standard input is served, which ends while standard output is still read.
    Finish,
}

/// How one connection is served.
#[derive(Debug, Clone)]
pub struct ConnectionOptions {
    /// The session of the client.
    pub session: Session,
    /// How much they may ask for at once.
    pub limits: Limits,
    /// What the end of their input means.
    pub on_eof: OnEof,
    /// The connection's place among others.
    pub place: Arc<Place>,
}

/// Serves one connection until it ends.
///
/// It ends when the input does, at the first frame that is none, at the first message that is
/// none, when answers cannot be written, when the kernel has no answer that may be released, or
/// when `shutdown` is cancelled: then calls that run are still answered.
///
/// # Errors
/// With what ended the connection, unless that was the end of the input between two frames or
/// the shutdown.
pub async fn serve_connection<R, W>(
    reader: R,
    writer: W,
    orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    options: ConnectionOptions,
    shutdown: CancellationToken,
) -> Result<(), NativeError>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let outbox = Outbox::new(options.limits.max_queued_bytes);
    let subject = options.session.principal.subject.clone();
    let link = Arc::new(Link::new(options.session, outbox));
    // When this future is dropped, the client is gone, too.
    let _gone = link.cancellation.clone().drop_guard();
    let mut writers = JoinSet::new();
    let outgoing = Arc::clone(&link);
    writers.spawn(async move { outgoing.outbox.write_to(writer).await });
    let mut connection = Connection {
        orchestrator,
        link,
        subject,
        limits: options.limits,
        on_eof: options.on_eof,
        place: options.place,
        tasks: JoinSet::new(),
        in_flight_bytes: 0,
        known: KnownTokens::default(),
        tokens: TokenCache::default(),
    };
    let mut frames = FrameReader::new(reader);
    let end = connection.read(&mut frames, &shutdown).await;
    let end = connection.finish(end, &mut frames).await;
    connection.link.outbox.finish();
    let hurried = end.cancels || shutdown.is_cancelled();
    let written = connection.flush(&mut writers, hurried, &shutdown).await;
    // A client that is gone takes nothing more; that is no error.
    if end.cancels { end.outcome } else { end.outcome.and(written) }
}

/// How reading ended.
struct End {
    /// Whether running calls are cancelled.
    cancels: bool,
    outcome: Result<(), NativeError>,
}

impl From<NativeError> for End {
    fn from(error: NativeError) -> Self {
        Self { cancels: true, outcome: Err(error) }
    }
}

/// What a task of a connection did.
struct Done {
    /// The size of the message that it was for.
    weight: usize,
    /// Tokens that the client holds.
    held: Vec<CapabilityToken>,
}

type Task = Result<Done, NativeError>;

struct Connection {
    orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    link: Arc<Link>,
    subject: Option<PublicKey>,
    limits: Limits,
    on_eof: OnEof,
    place: Arc<Place>,
    /// Everything that this connection waits for, but for its input.
    tasks: JoinSet<Task>,
    in_flight_bytes: usize,
    known: KnownTokens,
    tokens: TokenCache,
}

impl Connection {
    /// Reads and begins what is asked for, until there is nothing more to read.
    async fn read<R: AsyncRead + Unpin>(
        &mut self,
        frames: &mut FrameReader<R>,
        shutdown: &CancellationToken,
    ) -> End {
        let mut revocations = Some(self.orchestrator.revocations());
        self.look_up_held();
        let link = Arc::clone(&self.link);
        let mut stopped = pin!(shutdown.cancelled());
        let mut broken = pin!(link.outbox.broken().cancelled());
        let mut ended = false;
        // When a message must have arrived, or the first begun.
        let first = (self.on_eof == OnEof::Cancel).then(|| Instant::now() + self.limits.first);
        let mut late = None;
        loop {
            match self.begin_arrived(frames).await {
                Ok(true) => late = None,
                Ok(false) => {}
                Err(error) => return error.into(),
            }
            self.mark_place(frames.waiting());
            if frames.waiting() == 0 || !self.has_room() {
                late = first.filter(|_| self.place.is_silent());
            } else if late == first || late.is_none() {
                late = Some(Instant::now() + self.limits.arrival);
            }
            if ended && (self.on_eof == OnEof::Cancel || self.has_room()) {
                let cancels = self.on_eof == OnEof::Cancel;
                return match frames.finish() {
                    Ok(()) => End { cancels, outcome: Ok(()) },
                    Err(error) => NativeError::from(error).into(),
                };
            }
            let reads = !ended && (self.has_room() || frames.waiting() < READ_AHEAD);
            let step = tokio::select! {
                biased;
                () = &mut stopped => return End { cancels: false, outcome: Ok(()) },
                () = &mut broken => return NativeError::Io(gone()).into(),
                Some(done) = self.tasks.join_next() => self.reap(done),
                () = sleep_until(late.unwrap_or_else(Instant::now)), if late.is_some() && reads => {
                    Err(NativeError::Late)
                }
                // There may be room again.
                () = link.parked.begun() => Ok(()),
                revoked = next_revocation(&mut revocations) => {
                    self.announce(revoked);
                    Ok(())
                }
                more = frames.fill(), if reads => more.map(|more| ended = !more),
            };
            if let Err(error) = step {
                return error.into();
            }
        }
    }

    /// Tells the place what the connection does, and how many bytes of a message have come.
    fn mark_place(&self, waiting: usize) {
        if !self.tasks.is_empty() {
            self.place.running();
        } else if waiting > 0 && !self.place.is_receiving() {
            self.place.receiving();
        } else if waiting == 0 && !self.place.is_silent() {
            self.place.idle();
        }
    }

    /// Whether another message may be begun.
    fn has_room(&self) -> bool {
        let (limits, parked) = (&self.limits, &self.link.parked);
        let running = self.tasks.len().saturating_sub(parked.calls());
        // Messages of calls that wait are still kept, so they have a bound of their own.
        let parked_bytes = parked.bytes().min(limits.max_in_flight_bytes);
        let running_bytes = self.in_flight_bytes.saturating_sub(parked_bytes);
        // One message is always taken, whatever the limits say.
        self.tasks.is_empty()
            || (running < limits.max_in_flight && running_bytes < limits.max_in_flight_bytes)
    }

    /// Begins what has arrived, as far as there is room. Tells whether that was anything.
    async fn begin_arrived<R: AsyncRead + Unpin>(
        &mut self,
        frames: &mut FrameReader<R>,
    ) -> Result<bool, NativeError> {
        let mut begun = false;
        while self.has_room() {
            let Some(payload) = frames.next_payload()? else { break };
            begun = true;
            let weight = payload.len();
            self.in_flight_bytes += weight;
            let mut held = HeldMemory::of_process(FREE);
            let arrived = match payload {
                Cow::Borrowed(payload) => {
                    held.arrived();
                    held.grow(tree_size(payload)).await?;
                    ReceivedMessage::decode(payload, &mut self.tokens)
                }
                Cow::Owned(payload) => {
                    held.grow(weight).await?;
                    let mut tokens = take(&mut self.tokens);
                    let decode = move |payload: &[u8]| {
                        (ReceivedMessage::decode(payload, &mut tokens), tokens)
                    };
                    let (arrived, tokens) = held.read(payload, decode).await?;
                    self.tokens = tokens;
                    arrived
                }
            };
            match arrived? {
                ReceivedMessage::Call(request) => self.call(*request, weight, held),
                ReceivedMessage::ListCapabilities => self.list(weight),
                ReceivedMessage::Heartbeat => self.send(KernelMessage::Heartbeat, weight),
            }
        }
        Ok(begun)
    }

    fn call(&mut self, request: ToolCallRequest<PresentedToken>, weight: usize, held: HeldMemory) {
        let owns_id = self.link.take_id(&request.id);
        let caller = NativeCaller::new(Arc::clone(&self.link), request.id.clone(), owns_id, weight);
        if request.capability_token.problem().is_none() {
            self.known.presented(&request.capability_token, weight);
        }
        let request = NativeBridge.call(request, self.subject.as_ref(), owns_id);
        let orchestrator = Arc::clone(&self.orchestrator);
        self.tasks.spawn(async move {
            let (caller, _held) = (Arc::new(caller), held);
            let ended = orchestrator.run(request, Arc::clone(&caller) as _).await?;
            caller.respond(ended.evaluation).await?;
            Ok(Done { weight, held: Vec::new() })
        });
    }

    /// Answers with the capabilities of the client; an unknown client has none.
    fn list(&mut self, weight: usize) {
        let (orchestrator, link, peer) =
            (Arc::clone(&self.orchestrator), Arc::clone(&self.link), self.subject.clone());
        self.tasks.spawn(async move {
            let held = match peer {
                Some(peer) => orchestrator.capabilities_of(&peer).await?,
                None => Vec::new(),
            };
            let mut capabilities = held.clone();
            // The newest come first; of more than a frame can hold, those are the ones that count.
            while let Err(SendError::Frame(FrameError::TooLarge(_))) = {
                let message = KernelMessage::CapabilityList { capabilities: capabilities.clone() };
                link.outbox.send(&message).await
            } {
                capabilities.truncate(capabilities.len() / 2);
            }
            Ok(Done { weight, held })
        });
    }

    /// Learns which tokens the client holds, to tell it of revocations.
    fn look_up_held(&mut self) {
        let Some(subject) = self.subject.clone() else { return };
        let orchestrator = Arc::clone(&self.orchestrator);
        self.tasks.spawn(async move {
            let held = orchestrator.capabilities_of(&subject).await?;
            Ok(Done { weight: 0, held })
        });
    }

    /// Sends a message without waiting for room here, so that the connection stays attentive.
    fn send(&mut self, message: KernelMessage, weight: usize) {
        let link = Arc::clone(&self.link);
        self.tasks.spawn(async move {
            // The task that writes sees when the client takes it no more.
            let _ = link.outbox.send(&message).await;
            Ok(Done { weight, held: Vec::new() })
        });
    }

    /// Takes note of everything that has ended.
    fn reap(&mut self, done: Result<Task, JoinError>) -> Result<(), NativeError> {
        let mut next = Some(done);
        while let Some(done) = next {
            let done = done.map_err(|_| NativeError::BrokenOff)??;
            self.in_flight_bytes = self.in_flight_bytes.saturating_sub(done.weight);
            self.remember_held(&done.held);
            next = self.tasks.try_join_next();
        }
        Ok(())
    }

    fn remember_held(&mut self, held: &[CapabilityToken]) {
        for token in held {
            self.known.listed(token, USUAL_TOKEN);
        }
        if !held.is_empty() {
            // One may have been revoked after it was looked up and before it was known here.
            self.announce(None);
        }
    }

    /// Tells the other end of revocations that matter to it.
    fn announce(&mut self, revoked: Option<String>) {
        let orchestrator = &self.orchestrator;
        let verified = |token: &CapabilityToken| orchestrator.has_verified(token);
        let ids = match revoked {
            Some(id) => self.known.newly_revoked(|token| rests_on(token, &id), verified),
            // Some revocations were missed; the kernel knows which tokens they concern.
            None => self.known.newly_revoked(|token| orchestrator.is_revoked(token), verified),
        };
        for id in ids {
            self.send(KernelMessage::CapabilityRevoked { id }, 0);
        }
    }

    /// Waits for what was begun. When calls are cancelled, not for long.
    async fn finish<R: AsyncRead + Unpin>(
        &mut self,
        mut end: End,
        frames: &mut FrameReader<R>,
    ) -> End {
        let link = Arc::clone(&self.link);
        // Nothing more is begun, but a client that leaves, or takes no answers, still cancels.
        let mut watches = self.on_eof == OnEof::Cancel;
        let mut deadline = None;
        let mut stalled_at = None;
        let mut next_look = Instant::now() + self.limits.linger;
        loop {
            if end.cancels && deadline.is_none() {
                link.cancellation.cancel();
                deadline = Some(Instant::now() + self.limits.linger);
            }
            let waits = deadline.is_none();
            let step = tokio::select! {
                biased;
                done = self.tasks.join_next() => match done {
                    Some(done) => self.reap(done),
                    None => return end,
                },
                () = link.outbox.broken().cancelled(), if waits => Err(NativeError::Io(gone())),
                more = frames.fill(), if waits && watches => {
                    watches = matches!(more, Ok(true)) && frames.waiting() < READ_AHEAD;
                    end.cancels = !matches!(more, Ok(true));
                    Ok(())
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if !waits => return end,
                () = sleep_until(next_look), if waits => {
                    let waiting_at = link.outbox.waiting_at();
                    let stalled = waiting_at.is_some() && waiting_at == stalled_at;
                    (stalled_at, next_look) = (waiting_at, Instant::now() + self.limits.linger);
                    if stalled { Err(NativeError::Io(gone())) } else { Ok(()) }
                }
            };
            if let Err(error) = step {
                end.cancels = true;
                end.outcome = end.outcome.and(Err(error));
            }
        }
    }

    /// Waits until all answers are written; when the connection has to end, not for long.
    async fn flush(
        &self,
        writers: &mut JoinSet<std::io::Result<()>>,
        hurried: bool,
        shutdown: &CancellationToken,
    ) -> Result<(), NativeError> {
        let linger = async {
            if !hurried {
                shutdown.cancelled().await;
            }
            tokio::time::sleep(self.limits.linger).await;
        };
        tokio::select! {
            biased;
            written = writers.join_next() => match written {
                Some(Ok(written)) => Ok(written?),
                _ => Err(NativeError::BrokenOff),
            },
            () = linger => Err(NativeError::Io(gone())),
        }
    }
}

/// The next revocation: a token's id, or none when some were missed.
async fn next_revocation(revocations: &mut Option<broadcast::Receiver<String>>) -> Option<String> {
    match revocations {
        Some(receiver) => match receiver.recv().await {
            Ok(id) => Some(id),
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            Err(broadcast::error::RecvError::Closed) => {
                *revocations = None;
                None
            }
        },
        None => std::future::pending().await,
    }
}

fn gone() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the other end takes nothing more")
}

#[cfg(test)]
mod tests;
