//! The way back to the caller while a call runs: chunks and questions.
//!
//! Before the first of either leaves, the intent is durable. Chunks pass the output guards, are
//! hashed, and are bounded; questions leave child receipts.

use std::sync::Arc;

use chio_core::canonical::{self, Scratch, Size};
use chio_core::crypto::PublicKey;
use chio_core::receipt::{
    ChildOutcome, ChildReceipt, ContentHash, NO_OUTPUT_HASH, OperationKind, TerminalState,
};
use chio_core::signed::Signed;
use chio_core::tool_result::ToolResult;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::call::{Denial, Outcome, shortened};
use crate::caller::{AskError, Caller, Gone, Question, ServerNotification, Session};
use crate::error::KernelError;
use crate::guard::ReviewMode;
use crate::kernel::Inner;
use crate::road::{Draft, MAX_NESTING, Remarks, Reviewers};
use crate::store::{
    Alternative, Appended, Entry, IntentId, Reservation, Reserved, StoreError, StoreResult,
};

/// The most bytes of a notice to the caller.
const MAX_NOTICE: usize = 1 << 20;
/// The most bytes of what a server's error says for programs.
const MAX_DATA: usize = 64 << 10;
/// The most bytes of a question.
const MAX_QUESTION: usize = 4 << 20;

/// The way back to the caller, for one call.
pub struct CallContext<'a> {
    pub(crate) kernel: &'a Inner,
    pub(crate) draft: &'a Draft,
    /// The token and its ancestors; none outside of a call, where there is no intent to write.
    authority: Option<&'a [String]>,
    caller: &'a Arc<dyn Caller>,
    pub(crate) reviewers: Reviewers<'a>,
    /// Taken for as long as one chunk or question is under way.
    turn: tokio::sync::Mutex<()>,
    /// A write that must end even when the call is cancelled in the middle of it.
    writing: tokio::sync::Mutex<Option<Writing>>,
    state: Mutex<State>,
}

/// A write under way, in a task of its own.
#[derive(Debug)]
enum Writing {
    Intent(JoinHandle<StoreResult<Reserved>>),
    Child(JoinHandle<StoreResult<Appended>>),
}

#[derive(Debug, Default)]
struct State {
    /// The tool server says that nothing of the call is on its way to it.
    not_sent: bool,
    /// A chunk that was sent reports that the tool failed.
    says_failed: bool,
    /// A question that the caller knows of and that has no receipt yet.
    asked: Option<OperationKind>,
    held_bytes: u64,
    intent: Option<IntentId>,
    hash: ContentHash,
    /// Chunks that the caller was given.
    sent: u64,
    /// Chunks that wait for a guard that wants to see all of them.
    held_back: Vec<Value>,
    /// Why no more chunks are taken.
    broken: Option<Outcome>,
    remarks: Remarks,
    streams: bool,
    /// The hash of a value that was returned.
    value_hash: Option<String>,
}

/// Whether a value is within this many bytes, and not nested too deep.
fn fits(value: &Value, most: usize) -> bool {
    canonical::size(value).is_ok_and(|size| size.bytes <= most && size.depth <= MAX_NESTING)
}

fn incomplete(reason: &str, chunks: u64) -> Outcome {
    Outcome::Incomplete { reason: reason.to_owned(), chunks }
}

impl<'a> CallContext<'a> {
    pub(crate) fn new(
        kernel: &'a Inner,
        draft: &'a Draft,
        authority: &'a [String],
        caller: &'a Arc<dyn Caller>,
        reviewers: Reviewers<'a>,
    ) -> Self {
        Self { authority: Some(authority), ..Self::outside(kernel, draft, caller, reviewers) }
    }

    /// The context of what a server does outside of any call.
    pub(crate) fn outside(
        kernel: &'a Inner,
        draft: &'a Draft,
        caller: &'a Arc<dyn Caller>,
        reviewers: Reviewers<'a>,
    ) -> Self {
        let state =
            State { intent: draft.intent_id(), hash: ContentHash::stream(), ..State::default() };
        let turn = tokio::sync::Mutex::new(());
        let writing = tokio::sync::Mutex::new(None);
        Self {
            kernel,
            draft,
            authority: None,
            caller,
            reviewers,
            turn,
            writing,
            state: Mutex::new(state),
        }
    }

    /// The subject key of the caller.
    pub fn subject(&self) -> &PublicKey {
        &self.reviewers.input.token.subject
    }

    /// The session that the call belongs to.
    pub fn session(&self) -> &Session {
        self.caller.session()
    }

    /// Cancelled when the caller cancels the call.
    pub fn cancellation(&self) -> &CancellationToken {
        self.caller.cancellation()
    }

    /// Says that nothing of the call is on its way to the tool, before [`Self::sent`] is called. A
    /// call that ends meanwhile, for whatever reason, did not run.
    pub fn not_sent(&self) {
        self.state.lock().not_sent = true;
    }

    /// Says that the call is on its way to the tool.
    pub fn sent(&self) {
        self.state.lock().not_sent = false;
    }

    /// Whether the call did not reach the tool.
    pub fn is_not_sent(&self) -> bool {
        self.state.lock().not_sent
    }

    /// Whether a chunk says that the tool failed.
    pub(crate) fn says_failed(&self) -> bool {
        self.state.lock().says_failed
    }

    /// Whether the caller wants to know how far the call has come.
    #[must_use]
    pub fn wants_progress(&self) -> bool {
        self.caller.wants_progress()
    }

    /// Sends the caller a notice, as far as the output guards let it leave.
    pub async fn notice(&self, notice: ServerNotification) {
        let ServerNotification { method, params } = notice;
        let params = Value::Object(params);
        if !fits(&params, MAX_NOTICE) {
            return;
        }
        let Ok(reviewed) = self.reviewers.review_all(params).await else { return };
        let Value::Object(params) = reviewed.value else { return };
        let _turn = self.turn.lock().await;
        self.state.lock().remarks.extend(reviewed.remarks);
        if self.ensure_intent().await.is_ok() {
            self.caller.notice(ServerNotification { method, params }).await;
        }
    }

    /// Gives the caller one part of a stream.
    ///
    /// # Errors
    /// When the stream is over: the caller is gone, a bound is reached or a guard said no. The
    /// tool returns; what it returns is not looked at.
    pub async fn chunk(&self, data: Value) -> Result<(), Gone> {
        let _turn = self.turn.lock().await;
        if self.state.lock().broken.is_some() {
            return Err(Gone);
        }
        self.state.lock().streams = true;
        let most = self.kernel.config.limits.max_output_bytes;
        let result = if self.reviewers.look() && !fits(&data, most) {
            Err(incomplete("the stream has more bytes than allowed", self.chunks_sent()))
        } else if self.reviewers.want_whole() {
            self.hold_back(data).await
        } else {
            self.send(data).await
        };
        result.map_err(|outcome| {
            self.state.lock().broken.get_or_insert(outcome);
            Gone
        })
    }

    /// Keeps a chunk until the stream ends, within the same bounds as if it left.
    async fn hold_back(&self, data: Value) -> Result<(), Outcome> {
        let reviewed = self.reviewers.review(data, ReviewMode::EachChunk).await;
        let reviewed = reviewed.map_err(Outcome::Denied)?;
        let size = self.check_bounds(&reviewed.value)?;
        let mut state = self.state.lock();
        state.remarks.extend(reviewed.remarks);
        state.held_bytes = state.held_bytes.saturating_add(size);
        state.held_back.push(reviewed.value);
        Ok(())
    }

    /// Reviews, hashes and sends one chunk.
    async fn send(&self, data: Value) -> Result<(), Outcome> {
        let reviewed = self.reviewers.review(data, ReviewMode::EachChunk).await;
        let reviewed = reviewed.map_err(Outcome::Denied)?;
        self.check_bounds(&reviewed.value)?;
        self.state.lock().remarks.extend(reviewed.remarks);
        self.deliver(reviewed.value).await
    }

    /// Sends a chunk that guards and bounds have passed.
    async fn deliver(&self, data: Value) -> Result<(), Outcome> {
        self.ensure_intent().await?;
        let says_failed = ToolResult::new(&data).is_error();
        let index = {
            let mut state = self.state.lock();
            if state.hash.push(&data).is_err() {
                return Err(incomplete("a chunk has no canonical form", state.sent));
            }
            state.sent
        };
        self.caller.chunk(index, data).await.map_err(|Gone| {
            let (reason, chunks) = ("the caller is gone".to_owned(), self.chunks_sent());
            Outcome::Cancelled { reason, chunks }
        })?;
        let mut state = self.state.lock();
        state.sent += 1;
        // What a stream comes to, its last chunk says.
        state.says_failed = says_failed;
        Ok(())
    }

    /// Checks that one more chunk fits.
    fn check_bounds(&self, data: &Value) -> Result<u64, Outcome> {
        let limits = &self.kernel.config.limits;
        let size = canonical::size(data);
        let state = self.state.lock();
        let Ok(Size { bytes: size, depth }) = size else {
            return Err(incomplete("a chunk has no canonical form", state.sent));
        };
        if depth > MAX_NESTING {
            return Err(incomplete("a chunk is nested deeper than allowed", state.sent));
        }
        let held: u64 = u64::try_from(state.held_back.len()).unwrap_or(u64::MAX);
        if state.sent.saturating_add(held) >= limits.max_chunks {
            return Err(incomplete("the stream has more chunks than allowed", state.sent));
        }
        let wide = u64::try_from(size).unwrap_or(u64::MAX);
        let bytes = state.hash.total_bytes().saturating_add(state.held_bytes).saturating_add(wide);
        if bytes > limits.max_stream_bytes || size > limits.max_output_bytes {
            return Err(incomplete("the stream has more bytes than allowed", state.sent));
        }
        Ok(wide)
    }

    /// Makes the intent durable, if it is not yet.
    async fn ensure_intent(&self) -> Result<(), Outcome> {
        let Some(authority) = self.authority else { return Ok(()) };
        if self.state.lock().intent.is_some() {
            return Ok(());
        }
        let grant_index = self.draft.grant_index();
        let reservation = Reservation {
            intent: self
                .draft
                .intent()
                .map_err(|error| Outcome::Denied(crate::road::unwritten(&error)))?,
            alternatives: vec![Alternative { grant_index, holds: Vec::new(), price: None }],
            authority: authority.to_vec(),
            resumes: None,
            proofs: Vec::new(),
            approval: None,
            task: None,
        };
        let ledger = Arc::clone(&self.kernel.ledger);
        let mut writing = self.writing.lock().await;
        let write =
            tokio::spawn(async move { ledger.reserve(reservation).await }.in_current_span());
        *writing = Some(Writing::Intent(write));
        self.written(&mut writing).await
    }

    /// Waits for the write under way and takes note of what came of it.
    async fn written(&self, writing: &mut Option<Writing>) -> Result<(), Outcome> {
        let lost = || StoreError::Unavailable("a write broke off".to_owned());
        let ended = match writing {
            None => Ok(()),
            Some(Writing::Intent(write)) => match write.await.unwrap_or_else(|_| Err(lost())) {
                Ok(Reserved::Held { intent, .. }) => {
                    self.state.lock().intent = Some(intent);
                    Ok(())
                }
                Ok(refused) => Err(Outcome::Denied(crate::road::refusal(
                    refused,
                    &self.draft.record.capability_id,
                ))),
                Err(error) => Err(Outcome::Denied(crate::road::deny_store(&error))),
            },
            Some(Writing::Child(write)) => match write.await.unwrap_or_else(|_| Err(lost())) {
                Ok(Appended::At(_)) => Ok(()),
                _ => {
                    let reason = "the receipt of a question could not be made durable";
                    Err(incomplete(reason, self.chunks_sent()))
                }
            },
        };
        *writing = None;
        ended
    }

    /// Ends what a call that was cancelled has left half done: its intent is known, and every
    /// question that left has its receipt.
    pub(crate) async fn settle(&self) {
        let mut writing = self.writing.lock().await;
        let _ = self.written(&mut writing).await;
        drop(writing);
        let asked = self.state.lock().asked;
        if let Some(kind) = asked {
            let _ = self.record(kind, &Err(AskError::Gone)).await;
        }
    }

    /// Asks the caller something on behalf of the tool. The answer comes after its child receipt
    /// is durable.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn ask(&self, question: Question) -> Result<Value, AskError> {
        let _turn = self.turn.lock().await;
        if let Err(outcome) = self.ensure_intent().await {
            self.state.lock().broken.get_or_insert(outcome);
            return Err(AskError::Gone);
        }
        let Question { kind, params } = question;
        self.state.lock().asked = Some(kind);
        let reviewed = if fits(&params, MAX_QUESTION) {
            self.reviewers.review_all(params).await
        } else {
            let reason = "the question is larger than allowed";
            Err(Denial::by_kernel(chio_core::registry::ErrorCode::InvalidRequestShape, reason))
        };
        let answer = match reviewed {
            Err(denial) => Err(AskError::Failed(format!("held back by {}", denial.guard))),
            Ok(reviewed) => {
                self.state.lock().remarks.extend(reviewed.remarks);
                tokio::select! {
                    biased;
                    answer = self.caller.ask(Question { kind, params: reviewed.value }) => answer,
                    () = self.cancellation().cancelled() => Err(AskError::Gone),
                }
            }
        };
        let recorded = self.record(kind, &answer).await;
        if let Err(outcome) = recorded {
            self.state.lock().broken.get_or_insert(outcome);
            return Err(AskError::Gone);
        }
        answer
    }

    /// Signs and appends the child receipt of a question.
    async fn record(
        &self,
        kind: OperationKind,
        answer: &Result<Value, AskError>,
    ) -> Result<(), Outcome> {
        let unsigned = |_: KernelError| {
            let reason = "the receipt of a question could not be made durable";
            incomplete(reason, self.chunks_sent())
        };
        let body = self.child(kind, answer).map_err(unsigned)?;
        let log = Arc::clone(&self.kernel.log);
        let entry = Entry::new(body);
        let mut writing = self.writing.lock().await;
        let write = tokio::spawn(async move { log.append(entry).await }.in_current_span());
        *writing = Some(Writing::Child(write));
        self.state.lock().asked = None;
        self.written(&mut writing).await
    }

    /// The child receipt of a question, in its canonical form.
    fn child(
        &self,
        kind: OperationKind,
        answer: &Result<Value, AskError>,
    ) -> Result<Vec<u8>, KernelError> {
        let kernel = self.kernel;
        let (outcome, terminal_state) = match answer {
            Ok(value) => (ChildOutcome::Result(value.clone()), TerminalState::Completed),
            Err(AskError::Gone) => {
                let reason = AskError::Gone.to_string();
                (ChildOutcome::Error(reason.clone()), TerminalState::Cancelled { reason })
            }
            Err(error) => {
                (ChildOutcome::Error(shortened(error.to_string())), TerminalState::Completed)
            }
        };
        let mut metadata = outcome.metadata();
        if let (Value::Object(members), Some(trace)) = (&mut metadata, &self.draft.trace_id) {
            members.insert("traceId".to_owned(), json!(trace));
        }
        let child = ChildReceipt {
            id: kernel.unique_name("child-rcpt-"),
            timestamp: kernel.clock.unix_seconds(),
            session_id: self.session().id.clone(),
            parent_request_id: self.draft.record.request_id.clone(),
            request_id: kernel.unique_name("req-"),
            operation_kind: kind,
            terminal_state,
            outcome_hash: outcome.hash()?,
            policy_hash: self.draft.pipeline.policy_hash().to_owned(),
            metadata: Some(metadata),
            kernel_key: kernel.key.public_key().clone(),
            algorithm: None,
            signature: chio_core::crypto::Signature::blank(),
        };
        Ok(canonical::to_vec(&child.signed(&kernel.key)?)?)
    }

    /// How many chunks the caller was given.
    pub(crate) fn chunks_sent(&self) -> u64 {
        self.state.lock().sent
    }

    /// Why the stream broke off, if it did.
    pub(crate) fn broken(&self) -> Option<Outcome> {
        self.state.lock().broken.clone()
    }

    /// The end of a tool that returned: output guards for a value, the rest of a stream.
    pub(crate) async fn finish(&self, value: Option<Value>) -> Outcome {
        let streams = self.state.lock().streams;
        let ended = match value {
            Some(value) if !streams => self.finish_value(value).await,
            // A value after chunks is the last of them.
            Some(value) => self.finish_stream(Some(value)).await,
            None => self.finish_stream(None).await,
        };
        match ended {
            Ok(outcome) => outcome,
            Err(outcome) => outcome,
        }
    }

    async fn finish_value(&self, value: Value) -> Result<Outcome, Outcome> {
        let failed = |reason: &str| {
            let code = chio_core::registry::ErrorCode::ToolServerError;
            Outcome::Denied(Denial::by_kernel(code, reason))
        };
        let most = self.kernel.config.limits.max_output_bytes;
        if self.reviewers.look() && !fits(&value, most) {
            // Guards need not look through what cannot leave anyway.
            return Err(failed(&format!("expected at most {most} bytes of result, found more")));
        }
        let reviewed = self.reviewers.review_all(value).await.map_err(Outcome::Denied)?;
        let mut scratch = Scratch::default();
        let hash = scratch.hash(&reviewed.value);
        let hash = hash.map_err(|_| failed("the tool's result has no canonical form"))?;
        let size = scratch.size();
        if size.bytes > most {
            return Err(failed(&format!("expected at most {most} bytes of result, found more")));
        }
        if size.depth > MAX_NESTING {
            let reason = format!("expected at most {MAX_NESTING} levels of result, found more");
            return Err(failed(&reason));
        }
        let mut state = self.state.lock();
        state.value_hash = Some(hash);
        state.remarks.extend(reviewed.remarks);
        Ok(Outcome::Value(reviewed.value))
    }

    async fn finish_stream(&self, last: Option<Value>) -> Result<Outcome, Outcome> {
        self.state.lock().streams = true;
        if let Some(last) = last {
            let gone = |Gone| self.broken().unwrap_or_else(|| incomplete("broken off", 0));
            self.chunk(last).await.map_err(gone)?;
        }
        let held_back = std::mem::take(&mut self.state.lock().held_back);
        if self.reviewers.want_whole() {
            let reviewed = self.reviewers.review(Value::Array(held_back), ReviewMode::Whole).await;
            let reviewed = reviewed.map_err(Outcome::Denied)?;
            self.state.lock().remarks.extend(reviewed.remarks);
            let chunks = match reviewed.value {
                Value::Array(chunks) => chunks,
                other => vec![other],
            };
            for chunk in chunks {
                self.deliver(chunk).await?;
            }
        }
        Ok(Outcome::Stream { chunks: self.chunks_sent() })
    }

    /// The receipt's account of a stream; none when there was none.
    pub(crate) fn stream_record(&self) -> Option<Value> {
        let state = self.state.lock();
        if !state.streams {
            return None;
        }
        Some(json!({
            "chunks_expected": null,
            "chunks_received": state.hash.chunk_hashes().len(),
            "total_bytes": state.hash.total_bytes(),
            "chunk_hashes": state.hash.chunk_hashes(),
        }))
    }

    /// What guards remark about what left.
    pub(crate) fn remarks(&self) -> Remarks {
        std::mem::take(&mut self.state.lock().remarks)
    }

    /// A tool's words about its failure, as far as the output guards let them leave.
    pub(crate) async fn review_failure(&self, words: String) -> String {
        match self.reviewers.review_all(Value::String(shortened(words))).await {
            Ok(reviewed) => {
                self.state.lock().remarks.extend(reviewed.remarks);
                match reviewed.value {
                    Value::String(words) => words,
                    _ => "its words were replaced".to_owned(),
                }
            }
            Err(denial) => format!("its words were held back by {}", denial.guard),
        }
    }

    /// The data of a server's error, as far as the output guards let it leave.
    pub(crate) async fn review_data(&self, data: Value) -> Option<Value> {
        if !fits(&data, MAX_DATA) {
            return None;
        }
        let reviewed = self.reviewers.review_all(data).await.ok()?;
        self.state.lock().remarks.extend(reviewed.remarks);
        Some(reviewed.value)
    }

    /// The hash of what left.
    pub(crate) fn content_hash(&self, outcome: &Outcome) -> String {
        let mut state = self.state.lock();
        match outcome {
            Outcome::Value(_) => {
                state.value_hash.take().unwrap_or_else(|| NO_OUTPUT_HASH.to_owned())
            }
            // Nothing left: there is no output.
            Outcome::Denied(_) | Outcome::Cancelled { .. }
                if state.hash.chunk_hashes().is_empty() =>
            {
                NO_OUTPUT_HASH.to_owned()
            }
            _ if state.streams => state.hash.finish(),
            _ => NO_OUTPUT_HASH.to_owned(),
        }
    }

    /// The intent, if one was written.
    pub(crate) fn into_intent(self) -> Option<IntentId> {
        self.state.into_inner().intent
    }
}
