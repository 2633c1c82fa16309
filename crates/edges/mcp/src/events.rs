//! The event log of one session. It keeps what was sent to the client for a while, so that a client
//! whose stream broke off can read on after the last event that it has.
//!
//! The events of all streams are numbered in one sequence. A reader gets the events of one stream.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::limits::McpLimits;

/// A stream of a session: the number of its first event.
pub(crate) type StreamId = u64;

/// How many times as many bytes are kept while no client has read them yet.
const UNREAD: usize = 32;

/// After how many milliseconds a client whose stream was closed should come back.
const RETRY_MS: u64 = 1000;

/// The stream of what belongs to no request.
pub(crate) const NOTIFICATIONS: StreamId = 0;

/// How many bytes all sessions keep.
#[derive(Debug, Default)]
pub(crate) struct Retained(AtomicUsize);

impl Retained {
    /// How many bytes that is.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The events of one session.
#[derive(Debug)]
pub(crate) struct EventLog {
    session_id: String,
    limits: McpLimits,
    all: Arc<Retained>,
    state: Mutex<State>,
    /// The number of the newest event, for the readers that wait.
    newest: watch::Sender<u64>,
    /// Changes when a reader has taken something.
    taken: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    /// The number of the oldest event that is kept.
    first: u64,
    events: VecDeque<StoredEvent>,
    bytes: usize,
    /// The streams that have not ended.
    streams: HashMap<StreamId, Open>,
    /// The newest event of the notification stream that a reader was given.
    notified: u64,
}

#[derive(Debug)]
struct StoredEvent {
    stream: StreamId,
    body: Body,
    /// Whether a reader was given it.
    read: bool,
}

#[derive(Debug)]
enum Body {
    /// Only a number, from which a client can go on.
    Priming,
    Message(Arc<str>),
    /// There was no room for it.
    Gone,
}

/// A stream that has not ended.
#[derive(Debug, Default)]
struct Open {
    /// Cancelled when another request reads on.
    reader: CancellationToken,
    is_read: bool,
    unread: usize,
}

/// Why a stream cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// Another request reads the notification stream already.
    Busy,
    /// The event is not of this session, or no longer kept.
    Outside,
    /// The stream has ended, and its reader had everything.
    Finished,
}

/// How a number to go on from is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priming {
    /// Not at all: the client does not know of such.
    Absent,
    /// Without data. Some clients do not take note of it, and need not when more follows at once.
    Bare,
    /// As an event of its own kind, which every client takes note of and none takes for a message.
    Event,
}

/// What a reader finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// An event as it goes over the wire.
    Event(String),
    /// Nothing will come any more.
    Ended,
    /// An event was not kept long enough, or another request reads on.
    Lost,
}

impl EventLog {
    pub(crate) fn new(session_id: String, limits: McpLimits, all: Arc<Retained>) -> Self {
        let streams = HashMap::from([(NOTIFICATIONS, Open::default())]);
        let state = State { first: 1, events: VecDeque::new(), bytes: 0, streams, notified: 0 };
        let (newest, _) = watch::channel(0);
        let (taken, _) = watch::channel(());
        Self { session_id, limits, all, state: Mutex::new(state), newest, taken }
    }

    /// Opens the stream of a request. Its first event is a number to go on from.
    pub(crate) fn open(&self) -> StreamId {
        let mut state = self.state.lock();
        let stream = state.newest() + 1;
        state.streams.insert(stream, Open::default());
        self.push(&mut state, stream, Body::Priming);
        stream
    }

    /// Whether nothing was sent on a request's stream yet.
    pub(crate) fn is_untouched(&self, stream: StreamId) -> bool {
        self.state.lock().streams.get(&stream).is_some_and(|open| open.unread <= 1)
    }

    /// Sends a message. One that may be lost is dropped when too many wait for their reader.
    pub(crate) fn send(&self, stream: StreamId, text: &str, may_be_lost: bool) {
        let mut state = self.state.lock();
        // What comes after the end of its stream belongs to no request.
        let Some(open) = state.streams.get(&stream) else { return };
        if may_be_lost && open.unread >= self.limits.queued_notifications {
            return;
        }
        self.push(&mut state, stream, Body::Message(text.into()));
    }

    /// Sends a message when there is room for it. Tells whether the stream was still there.
    pub(crate) async fn send_in_time(&self, stream: StreamId, text: &str) -> bool {
        let mut taken = self.taken.subscribe();
        loop {
            taken.mark_unchanged();
            {
                let mut state = self.state.lock();
                match state.streams.get(&stream) {
                    None => return false,
                    Some(open) if open.unread < self.limits.queued_notifications => {
                        self.push(&mut state, stream, Body::Message(text.into()));
                        return true;
                    }
                    Some(_) => {}
                }
            }
            if taken.changed().await.is_err() {
                return false;
            }
        }
    }

    /// Ends a stream: its reader gets what is left.
    pub(crate) fn end(&self, stream: StreamId) {
        self.state.lock().streams.remove(&stream);
        self.newest.send_modify(|_| ());
        self.taken.send_replace(());
    }

    fn push(&self, state: &mut State, stream: StreamId, body: Body) {
        let size = body.size();
        state.bytes += size;
        self.all.0.fetch_add(size, Ordering::Relaxed);
        state.events.push_back(StoredEvent { stream, body, read: false });
        if let Some(open) = state.streams.get_mut(&stream) {
            open.unread += 1;
        }
        while state.events.len() > self.limits.window_events.max(1) {
            if let Some(oldest) = state.events.pop_front() {
                self.forget(&mut state.bytes, oldest.body.size());
            }
            state.first += 1;
        }
        let crowded = self.all.0.load(Ordering::Relaxed) > self.limits.retained_bytes;
        if crowded || state.bytes > self.limits.window_bytes {
            // What was read goes first.
            let (bytes, unread) =
                (self.limits.window_bytes, self.limits.window_bytes.saturating_mul(UNREAD));
            self.drop_bodies(state, if crowded { 0 } else { bytes }, |kept| kept.read);
            self.drop_bodies(state, if crowded { bytes } else { unread }, |_| true);
        }
        let newest = state.newest();
        self.newest.send_replace(newest);
    }

    /// Drops bodies until at most `max` bytes are left: the oldest first, never that of the newest.
    fn drop_bodies(&self, state: &mut State, max: usize, which: impl Fn(&StoredEvent) -> bool) {
        let last = state.events.len().saturating_sub(1);
        let State { events, bytes, .. } = state;
        for kept in events.iter_mut().take(last).filter(|kept| which(kept)) {
            if *bytes <= max {
                break;
            }
            if let Body::Message(text) = &kept.body {
                let size = text.len();
                kept.body = Body::Gone;
                self.forget(bytes, size);
            }
        }
    }

    fn forget(&self, bytes: &mut usize, size: usize) {
        *bytes = bytes.saturating_sub(size);
        self.all.0.fetch_sub(size, Ordering::Relaxed);
    }

    /// Reads a request's stream from its beginning.
    pub(crate) fn read(self: &Arc<Self>, stream: StreamId) -> EventReader {
        let mut state = self.state.lock();
        let reader = state.begin_reading(stream);
        drop(state);
        self.reader(stream, stream.saturating_sub(1), reader)
    }

    /// Reads the notification stream from what its last reader was given.
    pub(crate) fn read_notifications(self: &Arc<Self>) -> Result<EventReader, Conflict> {
        let mut state = self.state.lock();
        if state.is_read(NOTIFICATIONS) {
            return Err(Conflict::Busy);
        }
        let after = state.notified;
        let reader = state.begin_reading(NOTIFICATIONS);
        self.push(&mut state, NOTIFICATIONS, Body::Priming);
        drop(state);
        Ok(self.reader(NOTIFICATIONS, after, reader))
    }

    /// Reads on after an event.
    pub(crate) fn resume(self: &Arc<Self>, last_event_id: &str) -> Result<EventReader, Conflict> {
        let (session_id, number) = last_event_id.rsplit_once('-').ok_or(Conflict::Outside)?;
        let after: u64 = number.parse().map_err(|_| Conflict::Outside)?;
        // Not every way to write a number is one that we write.
        if session_id != self.session_id || number != after.to_string() {
            return Err(Conflict::Outside);
        }
        let mut state = self.state.lock();
        let at = after.checked_sub(state.first).and_then(|at| usize::try_from(at).ok());
        let kept = at.and_then(|at| state.events.get(at)).ok_or(Conflict::Outside)?;
        let stream = kept.stream;
        let mut later = 0_usize;
        for kept in state.events.iter().skip(at.unwrap_or_default() + 1) {
            if kept.stream == stream {
                later += 1;
                if matches!(kept.body, Body::Gone) {
                    return Err(Conflict::Outside);
                }
            }
        }
        if stream == NOTIFICATIONS && state.is_read(stream) {
            return Err(Conflict::Busy);
        }
        if later == 0 && !state.streams.contains_key(&stream) {
            return Err(Conflict::Finished);
        }
        let reader = state.begin_reading(stream);
        drop(state);
        Ok(self.reader(stream, after, reader))
    }

    fn reader(
        self: &Arc<Self>,
        stream: StreamId,
        after: u64,
        replaced: CancellationToken,
    ) -> EventReader {
        let news = self.newest.subscribe();
        EventReader { log: Arc::clone(self), stream, after, replaced, news }
    }

    /// Drops everything that was read, or everything at all, the newest included, because all
    /// sessions together keep too much. A client that comes back for it finds it gone.
    pub(crate) fn drop_messages(&self, unread_too: bool) {
        let mut state = self.state.lock();
        let State { events, bytes, streams, .. } = &mut *state;
        for kept in events.iter_mut() {
            // What a client still waits for goes last.
            let waited_for = streams.get(&kept.stream).is_some_and(|open| open.is_read);
            if let Body::Message(text) = &kept.body
                && (kept.read || (unread_too && !waited_for))
            {
                let size = text.len();
                kept.body = Body::Gone;
                self.forget(bytes, size);
            }
        }
    }

    /// Whether a request reads the notification stream.
    pub(crate) fn is_watched(&self) -> bool {
        self.state.lock().is_read(NOTIFICATIONS)
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        let bytes = self.state.lock().bytes;
        self.all.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Body {
    fn size(&self) -> usize {
        match self {
            Self::Message(text) => text.len(),
            Self::Priming | Self::Gone => 0,
        }
    }
}

impl State {
    fn newest(&self) -> u64 {
        let kept = u64::try_from(self.events.len()).unwrap_or(u64::MAX);
        self.first.saturating_add(kept).saturating_sub(1)
    }

    fn is_read(&self, stream: StreamId) -> bool {
        self.streams.get(&stream).is_some_and(|open| open.is_read)
    }

    /// A request reads a stream from now on; the one that read it before reads no more.
    fn begin_reading(&mut self, stream: StreamId) -> CancellationToken {
        let replaced = CancellationToken::new();
        if let Some(open) = self.streams.get_mut(&stream) {
            open.reader.cancel();
            open.reader = replaced.clone();
            open.is_read = true;
        }
        replaced
    }
}

/// Reads one stream.
#[derive(Debug)]
pub(crate) struct EventReader {
    log: Arc<EventLog>,
    stream: StreamId,
    /// Everything up to here was looked at.
    after: u64,
    /// Cancelled when another request reads on.
    replaced: CancellationToken,
    news: watch::Receiver<u64>,
}

impl EventReader {
    /// The next event, if it is there already.
    pub(crate) fn try_next(&mut self, form: Priming) -> Option<Next> {
        let log = Arc::clone(&self.log);
        let mut state = log.state.lock();
        let is_open = state.streams.contains_key(&self.stream);
        if self.replaced.is_cancelled() {
            return Some(Next::Lost);
        }
        if self.after + 1 < state.first {
            // Some events are gone; whether they were this stream's is not known any more.
            let missed = self.stream != NOTIFICATIONS;
            self.after = state.first - 1;
            if missed && is_open {
                return Some(Next::Lost);
            }
        }
        let skip = usize::try_from(self.after + 1 - state.first).unwrap_or(usize::MAX);
        let (mut found, mut read) = (None, 0);
        for kept in state.events.iter_mut().skip(skip) {
            self.after += 1;
            if kept.stream == self.stream {
                kept.read = true;
                found = self.written(&kept.body, form);
                read += 1;
                if found.is_some() {
                    break;
                }
            }
        }
        if self.stream == NOTIFICATIONS && read > 0 {
            state.notified = self.after;
        }
        if let Some(open) = state.streams.get_mut(&self.stream) {
            open.unread = open.unread.saturating_sub(read);
            log.taken.send_replace(());
        }
        found.or_else(|| (!is_open).then_some(Next::Ended))
    }

    /// An event as it goes over the wire; none for what this client is not told.
    fn written(&self, body: &Body, form: Priming) -> Option<Next> {
        let (session, number, retry) = (&self.log.session_id, self.after, RETRY_MS);
        // Never an empty `data`: some clients give it to their JSON parser.
        let event = match (body, form) {
            (Body::Gone, _) => return Some(Next::Lost),
            (Body::Message(text), _) => {
                let number = number.to_string();
                ["id: ", session, "-", &number, "\ndata: ", text, "\n\n"].concat()
            }
            (Body::Priming, Priming::Absent) => return None,
            (Body::Priming, Priming::Bare) => format!("id: {session}-{number}\nretry: {retry}\n\n"),
            (Body::Priming, Priming::Event) => {
                format!("id: {session}-{number}\nretry: {retry}\nevent: prime\ndata: {{}}\n\n")
            }
        };
        Some(Next::Event(event))
    }

    /// Waits for the next event.
    pub(crate) async fn next(&mut self, form: Priming) -> Next {
        loop {
            self.news.mark_unchanged();
            if let Some(next) = self.try_next(form) {
                return next;
            }
            let changed = tokio::select! {
                changed = self.news.changed() => changed,
                () = self.replaced.cancelled() => return Next::Lost,
            };
            if changed.is_err() {
                return Next::Ended;
            }
        }
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        let mut state = self.log.state.lock();
        if let Some(open) = state.streams.get_mut(&self.stream)
            && !self.replaced.is_cancelled()
        {
            open.is_read = false;
        }
    }
}

#[cfg(test)]
mod tests;
