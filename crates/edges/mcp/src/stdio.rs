//! Sessions over standard input and output: a message on each line.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use chio_core::registry::ErrorCode;
use chio_cross_protocol::Principal;
use chio_edge::Streams;
use chio_edge::lines::{LineSender, line_queue};
use chio_net::jsonrpc::{
    Envelope, Inbound, Incoming, Message, Rejected, Request, RequestId, Response, RpcError,
};
use chio_net::lines::{Line, Lines};
use chio_net::memory::{Crowded, HeldMemory, read_text};
use tokio::io::{AsyncRead, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::{invalid, not_ready, registered};
use crate::events::NOTIFICATIONS;
use crate::methods::batch::Batch;
use crate::methods::{self, Credentials};
use crate::outlet::Outlet;
use crate::service::McpService;
use crate::session::{McpSession, Stage};

/// How long requests may still run when the input has ended or everything ends: a client waits two
/// seconds for all of the end.
const PATIENCE: Duration = Duration::from_millis(700);
/// How long requests that were cancelled may take to end, and what was answered to be read.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long what is read next waits for a notification, so that it mostly comes after it.
const SHORTLY: Duration = Duration::from_millis(50);
/// How many notifications may wait for those before them.
const MAX_NOTIFICATIONS: usize = 64;

impl McpService {
    /// Serves one client over a pair of byte streams until its input ends.
    ///
    /// # Errors
    /// When the streams fail.
    pub(crate) async fn serve_lines(
        &self,
        streams: Streams,
        shutdown: CancellationToken,
    ) -> io::Result<()> {
        let (lines, line_writer) = line_queue();
        let mut writing = tokio::spawn(line_writer.write_to(streams.writer));
        let mut conversation = Conversation {
            service: self,
            principal: streams.principal,
            lines,
            session: None,
            running: JoinSet::new(),
            notifying: None,
        };
        let read = tokio::select! {
            read = conversation.read(streams.reader) => read,
            // A client that reads no responses is gone.
            written = &mut writing => written.unwrap_or(Ok(())),
            () = shutdown.cancelled() => Ok(()),
        };
        conversation.end().await;
        drop(conversation);
        if !writing.is_finished() {
            let _ = tokio::time::timeout(LAST_WORDS, writing).await;
        }
        read
    }
}

/// A notification that waits for those before it, and the memory that it takes.
struct Waiting {
    handled: Pin<Box<dyn Future<Output = ()> + Send>>,
    _held: HeldMemory,
}

struct Conversation<'a> {
    service: &'a McpService,
    principal: Principal,
    lines: LineSender,
    session: Option<Arc<McpSession>>,
    running: JoinSet<()>,
    /// The way of notifications that are for servers; none before the first.
    notifying: Option<mpsc::Sender<Waiting>>,
}

impl Conversation<'_> {
    async fn read<R: AsyncRead + Unpin>(&mut self, reader: R) -> io::Result<()> {
        let limits = &self.service.shared.options.limits;
        let (max, most) = (limits.message_bytes, limits.running);
        let mut lines = Lines::new(BufReader::with_capacity(64 << 10, reader), max);
        while let Some(line) = lines.next().await? {
            match line {
                Line::Cut { head, tail } => {
                    let message = format!("expected a message of at most {max} bytes, found more");
                    let Envelope { id, is_response, .. } = Envelope::of_ends(head, tail);
                    let response = Response::err(id.unwrap_or(RequestId::NULL), invalid(message));
                    match &self.session {
                        // What waits for it need not wait any longer.
                        Some(session) if is_response => session.pending.resolve(response),
                        _ => self.reply(&response),
                    }
                }
                Line::Crowded => {
                    let error = registered(
                        RpcError::INTERNAL_ERROR,
                        Crowded.to_string(),
                        ErrorCode::InternalError,
                    );
                    self.reply(&Response::err(RequestId::NULL, error));
                }
                Line::Whole(line) if line.trim_ascii().is_empty() => {}
                Line::Whole(line) => {
                    let read = move |line: &[u8]| Inbound::new().read_all(line, most);
                    let message = read_text(line, read).await.map_err(io::Error::other)?;
                    self.handle(message, lines.take_memory()).await;
                }
            }
            while self.running.try_join_next().is_some() {}
            // A client that does not read its responses gets no further ones.
            self.lines.ready().await;
        }
        Ok(())
    }

    fn reply(&self, response: &Response) {
        self.lines.send(response.to_text(), false);
    }

    /// Handles a line, which takes this memory.
    async fn handle(&mut self, line: Result<Incoming, Rejected>, held: HeldMemory) {
        let message = match line {
            Ok(Incoming::One(message)) => Ok(message),
            Ok(Incoming::Batch(messages)) => match self.session.clone() {
                Some(session) if session.version.has_batches() => {
                    return self.batch(&session, messages, held);
                }
                _ => Err(Rejected::batch()),
            },
            Err(rejected) => Err(rejected),
        };
        let message = match message {
            Ok(message) => message,
            Err(rejected) => {
                if let Some(answer) = rejected.into_answer() {
                    self.reply(&answer);
                }
                return;
            }
        };
        match message {
            Message::Request(request) => self.request(request, held).await,
            Message::Notification(notification) => {
                if let Some(session) = &self.session
                    && let Some(handled) = methods::handle_notification(session, notification)
                {
                    self.notify(handled, held).await;
                }
            }
            Message::Response(response) => {
                if let Some(session) = &self.session {
                    session.pending.resolve(response);
                }
            }
        }
    }

    async fn request(&mut self, request: Request, held: HeldMemory) {
        let Some(session) = self.session.clone() else {
            let id = request.id.clone();
            let outcome = match request.method.as_str() {
                "initialize" => self.initialize(request).await,
                "ping" => Ok(serde_json::json!({})),
                method => Err(not_ready(method)),
            };
            self.reply(&Response { id, outcome: outcome.map(Into::into) });
            return;
        };
        let lines = self.lines.clone();
        let credentials = Credentials::default();
        let handled = methods::handle_request(&session, request, NOTIFICATIONS, credentials);
        self.running.spawn(async move {
            let _held = held;
            if let Some(response) = handled.await {
                lines.send(response.to_text(), false);
            }
        });
    }

    /// Passes notifications on in their order. What is read next waits for one only shortly: guards
    /// may take their time over it.
    async fn notify(
        &mut self,
        handled: impl Future<Output = ()> + Send + 'static,
        held: HeldMemory,
    ) {
        let notifying = self.notifying.get_or_insert_with(|| {
            let (sender, mut waiting) = mpsc::channel::<Waiting>(MAX_NOTIFICATIONS);
            self.running.spawn(async move {
                while let Some(Waiting { handled, .. }) = waiting.recv().await {
                    handled.await;
                }
            });
            sender
        });
        let is_first = notifying.capacity() == MAX_NOTIFICATIONS;
        let (done, is_done) = oneshot::channel();
        let handled = Box::pin(async move {
            let _done = done;
            handled.await;
        });
        if notifying.try_send(Waiting { handled, _held: held }).is_err() {
            tracing::debug!("a notification is not passed on: {MAX_NOTIFICATIONS} others wait");
        } else if is_first {
            let _: Result<Result<(), _>, _> = tokio::time::timeout(SHORTLY, is_done).await;
        }
    }

    /// Runs the messages of a batch, which takes this memory. Their responses are one line.
    fn batch(
        &mut self,
        session: &Arc<McpSession>,
        messages: Vec<Result<Message, Rejected>>,
        held: HeldMemory,
    ) {
        let mut batch = Batch::begin(session, messages, NOTIFICATIONS, &Credentials::default());
        let lines = self.lines.clone();
        self.running.spawn(async move {
            let _held = held;
            let mut texts = Vec::new();
            while let Some(response) = batch.next().await {
                texts.push(response.to_text());
            }
            if !texts.is_empty() {
                lines.send(format!("[{}]", texts.join(",")), false);
            }
        });
    }

    async fn initialize(&mut self, request: Request) -> Result<serde_json::Value, RpcError> {
        let params = request.params.into_object()?;
        let lines = self.lines.clone();
        let shared = &self.service.shared;
        let opened =
            methods::open(shared, self.principal.clone(), params, |_| Outlet::Lines(lines)).await;
        let (session, result) = opened?;
        self.session = Some(session);
        Ok(result)
    }

    /// Lets what runs end, then ends the session.
    async fn end(&mut self) {
        self.notifying = None;
        let all = async { while self.running.join_next().await.is_some() {} };
        let Some(session) = self.session.take() else { return };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            session.cancel_all();
            let all = async { while self.running.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(LAST_WORDS, all).await;
            // What waits for a server is not waited for; calls go on to their receipts.
            self.running.shutdown().await;
        }
        self.service.shared.sessions.end(&session, Stage::Closed);
        session.leave_servers().await;
    }
}
