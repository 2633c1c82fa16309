//! What the kernel asks of a store: narrow traits, one for each thing that is kept.
//!
//! A store is shared by every kernel that meets in it. What only one kernel may write, its log, it
//! writes through a [`Ledger`] that is bound to that log. All of a call's durable facts go into one
//! transaction: a reservation with its intent, a receipt with its settlement.

mod approvals;
mod once;
mod tasks;

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use chio_core::canonical::Written;
use chio_core::capability::CapabilityToken;
use chio_core::certificate::KernelCertificate;
use chio_core::checkpoint::KernelCheckpoint;
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::mark::{Mark, StoreNumbers};
use chio_core::receipt::{GuardEvidence, RedactionMode, ToolCallAction};
use chio_core::registry::ErrorCode;
use serde::{Deserialize, Serialize};

use crate::mark::Marks;

pub use approvals::{
    Answered, Approval, ApprovalQuery, ApprovalRequest, ApprovalState, ApprovalStore,
};
pub use once::{ApprovalUse, ProofUse, UseRefused};
pub use tasks::{
    CallTask, EndedTask, MAX_LISTED, MessageQuery, MessageStanding, NEVER, NewTask, Task,
    TaskClaim, TaskEnd, TaskIndex, TaskPage, TaskQuery, TaskQuota, TaskReceipt, TaskRefused,
    TaskState, TaskStore,
};

/// Why a store did not do what it was asked. Nothing of the request has happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It could not be reached, read or written; later it may.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// What it holds cannot be right.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// It is not ours to use as it is.
    #[error("{0}")]
    Refused(String),
    /// It had more when its kernels left it.
    #[error(
        "the store is behind what its kernels have signed: {0}; put back the store that was here, or \
         accept this one with `chio store accept-restore` [{code}]",
        code = ErrorCode::InternalError
    )]
    RolledBack(String),
}

/// What a store answers.
pub type StoreResult<T> = Result<T, StoreError>;

/// The number of an intent, unique within its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentId(pub i64);

/// A call that is about to run: all that a receipt about it needs if it is left unfinished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The kernel's own name of the call.
    pub request_id: String,
    /// The token presented.
    pub capability_id: String,
    /// The server called.
    pub tool_server: String,
    /// The tool called.
    pub tool_name: String,
    /// The parameters, as the receipt will keep them.
    pub action: ToolCallAction,
    /// Whether they are whole.
    pub redaction: RedactionMode,
    /// The policy in force.
    pub policy_hash: String,
    /// What the guards said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<GuardEvidence>,
    /// The receipt's metadata so far.
    pub metadata: Written,
    /// The caller's tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// When the call began, in Unix seconds.
    pub started_at: u64,
    /// Whether it waits for an approval, so that nothing has run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub parked: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// What one grant is debited for a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The token whose grant it is.
    pub capability_id: String,
    /// The grant's place in that token's scope.
    pub grant_index: u32,
    /// The most calls; none means any number, and then none is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_invocations: Option<u32>,
    /// Minor units reserved for this call.
    #[serde(default)]
    pub units: u64,
    /// The most units in all; none means that none are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_units: Option<u64>,
}

impl Hold {
    /// Whether the hold counts anything.
    #[must_use]
    pub const fn counts(&self) -> bool {
        self.max_invocations.is_some() || self.max_units.is_some()
    }
}

/// One way to pay for a call: a grant of the presented token, and the grants above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternative {
    /// The grant of the presented token.
    pub grant_index: u32,
    /// Everything that is debited together.
    pub holds: Vec<Hold>,
    /// Minor units that the call may cost, and their currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<chio_core::money::MonetaryAmount>,
}

/// A request to begin a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// What is about to run.
    pub intent: Intent,
    /// The ways to pay, best first; the first of which every hold fits is taken.
    pub alternatives: Vec<Alternative>,
    /// The presented token and its ancestors: refused when any is revoked.
    pub authority: Vec<String>,
    /// The open intent that goes on with this reservation; a new one when absent.
    #[serde(skip)]
    pub resumes: Option<IntentId>,
    /// Proofs that are used up.
    #[serde(skip)]
    pub proofs: Vec<ProofUse>,
    /// An approval that is used up. The request in the inbox that the intent waited for, if any,
    /// becomes used with it, and must be approved.
    #[serde(skip)]
    pub approval: Option<ApprovalUse>,
    /// A task that the call is, to be stored. It belongs to the intent.
    #[serde(skip)]
    pub task: Option<Arc<CallTask>>,
}

/// What became of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// The intent is durable and the holds are taken.
    Held {
        /// The open intent.
        intent: IntentId,
        /// Which alternative, from 0.
        alternative: usize,
    },
    /// One of the tokens is revoked: this one.
    Revoked(String),
    /// No alternative fits; what was missing in the last of them.
    Exhausted {
        /// The token.
        capability_id: String,
        /// Its grant.
        grant_index: u32,
        /// What it has no more of.
        what: Exhausted,
    },
    /// Everything is stopped, for this reason.
    Stopped(String),
    /// A proof or an approval cannot be used.
    Refused(UseRefused),
    /// The intent to go on with is closed: a sweep took the call for abandoned.
    IntentClosed,
}

/// A call that waits with an open intent before it may reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// What a receipt about it needs if it is left unfinished.
    pub intent: Intent,
    /// The open intent that goes on with this; a new one when absent.
    pub resumes: Option<IntentId>,
    /// Proofs that are used up.
    pub proofs: Vec<ProofUse>,
    /// The approval that it waits for. Its row in the inbox belongs to the intent.
    pub waits_for: Option<ApprovalRequest>,
    /// The deferred task that it runs. It belongs to the intent.
    pub claims: Option<TaskClaim>,
}

/// What became of an opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// The intent is durable.
    At(IntentId),
    /// The proof cannot be used.
    Refused(UseRefused),
    /// The task cannot be run.
    NotClaimed(TaskRefused),
    /// The inbox is full.
    InboxFull,
    /// The intent to go on with is closed.
    IntentClosed,
}

/// What a grant has no more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// The number of calls.
    Invocations,
    /// The amount of money.
    Cost,
}

/// An intent that no receipt has closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenIntent {
    /// Its number.
    pub id: IntentId,
    /// What was reserved.
    pub reservation: Reservation,
    /// Which alternative was taken.
    pub alternative: usize,
    /// Whether the call has reserved; else it waits, and nothing has run.
    pub reserved: bool,
}

/// What a grant gets back when a call cost less than was held, or never ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refund {
    /// The token.
    pub capability_id: String,
    /// Its grant.
    pub grant_index: u32,
    /// The number of calls that are given back.
    pub invocations: u32,
    /// The money that is given back, in minor units.
    pub units: u64,
}

/// An intent that ends with the entry that carries this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// The intent that ends.
    pub intent: IntentId,
    /// What is given back.
    pub refunds: Vec<Refund>,
    /// The receipt, which the inbox and the task that belong to the intent name from then on.
    pub receipt_id: String,
    /// What becomes of its request in the inbox if that is still open.
    pub unanswered: ApprovalState,
    /// How its task ended; failed and without a result when absent.
    pub task: Option<TaskEnd>,
    /// When the call ended, in Unix seconds. Its task is kept for a while from then on, even past the
    /// time until which it was to be kept.
    pub closed_at: u64,
}

/// A receipt on its way into the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The canonical form of the whole signed receipt: the leaf's content.
    pub body: Vec<u8>,
    /// The intent that it closes.
    pub closes: Option<Closing>,
    /// The task of its call, where no intent has it.
    pub task: Option<Box<EndedTask>>,
}

impl Entry {
    /// A receipt that closes nothing.
    pub const fn new(body: Vec<u8>) -> Self {
        Self { body, closes: None, task: None }
    }
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It is durable, at this place of the log, from 1.
    At(u64),
    /// Its intent was closed elsewhere; nothing was written.
    IntentClosed,
}

/// The intents of a kernel that runs no more. While this is alive, that kernel cannot start.
pub struct Abandoned {
    /// The log of that kernel.
    pub log_id: String,
    /// What it left open.
    pub intents: Vec<OpenIntent>,
    /// Holds the kernel's lock.
    pub lock: Box<dyn Any + Send + Sync>,
}

/// A log of a kernel that runs no more, with entries that no checkpoint covers, to be covered in its
/// place. While this is alive, that kernel cannot start.
pub struct Uncovered {
    /// The kernel's key.
    pub key: Keypair,
    /// Its log, to write.
    pub ledger: Arc<dyn Ledger>,
    /// Its mark, if it has one.
    pub marks: Marks,
}

/// The log of one kernel and the shared budgets that its entries settle. Its owner holds the
/// lock of that log.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Writes the intent of a call that cannot reserve yet, with all that it waits for, in one
    /// durable transaction.
    async fn open(&self, opening: Opening) -> StoreResult<Opened>;

    /// Takes the holds of the first alternative that fits and writes the intent, in one durable
    /// transaction that also looks at revocations and the stop.
    async fn reserve(&self, reservation: Reservation) -> StoreResult<Reserved>;

    /// Appends a receipt, closes its intent if that is still open, and settles, in one durable
    /// transaction.
    async fn append(&self, entry: Entry) -> StoreResult<Appended>;

    /// Adds a checkpoint of this log.
    async fn checkpoint(&self, checkpoint: KernelCheckpoint) -> StoreResult<()>;

    /// Keeps the kernel's mark beside its key, in place of the one before. Tells whether there was
    /// none, where there should be one.
    async fn keep_mark(&self, mark: Mark) -> StoreResult<bool>;

    /// Refuses to go on when what is written is lost, because the store was removed while it was in
    /// use.
    async fn check_present(&self) -> StoreResult<()>;

    /// The open intents of this log.
    async fn open_intents(&self) -> StoreResult<Vec<OpenIntent>>;

    /// Kernels that run no more and left intents open.
    async fn abandoned(&self) -> StoreResult<Vec<Abandoned>>;

    /// Kernels that run no more, left entries without a checkpoint, and whose keys are here.
    async fn uncovered(&self) -> StoreResult<Vec<Uncovered>>;
}

/// What is revoked, as of an epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revocations {
    /// Grows with every revocation and every change of the stop.
    pub epoch: u64,
    /// Tokens revoked after the epoch that was asked about.
    pub ids: Vec<String>,
    /// Why everything is stopped, if it is.
    pub stopped: Option<String>,
}

/// Which tokens are valid no more.
#[async_trait]
pub trait RevocationStore: Send + Sync {
    /// The epoch now; it may be ahead of what is committed, and never behind what a caller was
    /// told is revoked.
    async fn epoch(&self) -> StoreResult<u64>;

    /// What was revoked after this epoch; 0 asks for everything.
    async fn revoked_since(&self, epoch: u64) -> StoreResult<Revocations>;

    /// Revokes a token, known or not. Tells whether it was not revoked before.
    async fn revoke(&self, capability_id: &str, at: u64) -> StoreResult<bool>;

    /// Stops everything for a reason, or lets it go on.
    async fn stop(&self, reason: Option<String>) -> StoreResult<()>;
}

/// Tokens that were issued, presented or imported. The kernel that remembers one has verified it.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Keeps a token. Tells whether this is the token known by its id: false when another is.
    async fn remember(&self, token: &CapabilityToken) -> StoreResult<bool>;

    /// The tokens with these ids, as far as they are known.
    async fn tokens(&self, ids: &[String]) -> StoreResult<Vec<CapabilityToken>>;

    /// The tokens of a subject that are in their window now, newest first, at most `limit`.
    async fn held_by(
        &self,
        subject: &PublicKey,
        now: u64,
        limit: usize,
    ) -> StoreResult<Vec<CapabilityToken>>;

    /// At most `limit` known tokens whose ids come after this text, in the order of their ids. A
    /// short answer is not the end, an empty one is.
    async fn known_after(&self, id: &str, limit: usize) -> StoreResult<Vec<CapabilityToken>>;
}

/// One log of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSummary {
    /// The log.
    pub log_id: String,
    /// The kernel that writes it.
    pub kernel_key: PublicKey,
    /// What authorities say for it: its store's own, and others that were admitted.
    pub certificates: Vec<KernelCertificate>,
    /// How many entries it has.
    pub entries: u64,
    /// How many checkpoints it has.
    pub checkpoints: u64,
    /// How many intents are open.
    pub open_intents: u64,
}

/// One entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Its place, from 1.
    pub seq: u64,
    /// The canonical form of the whole signed receipt.
    pub body: Vec<u8>,
}

/// The logs of a store, to read. Answers are bounded: a short one is not the end, an empty one is.
#[async_trait]
pub trait LogStore: Send + Sync {
    /// The name of the store, which certificates carry.
    async fn store_id(&self) -> StoreResult<String>;

    /// Every log.
    async fn logs(&self) -> StoreResult<Vec<LogSummary>>;

    /// At most `limit` entries of a log from this place on.
    async fn entries(&self, log_id: &str, from: u64, limit: usize) -> StoreResult<Vec<LogEntry>>;

    /// At most `limit` checkpoints of a log from this number on.
    async fn checkpoints(
        &self,
        log_id: &str,
        from: u64,
        limit: usize,
    ) -> StoreResult<Vec<KernelCheckpoint>>;

    /// The checkpoint whose batch has this entry, if there is one yet.
    async fn covering(&self, log_id: &str, seq: u64) -> StoreResult<Option<KernelCheckpoint>>;

    /// Keeps a certificate beside those of other authorities; a log that it speaks of is known from
    /// then on.
    async fn admit(&self, certificate: &KernelCertificate) -> StoreResult<()>;
}

/// What has been debited from a grant so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Calls.
    pub invocations: u64,
    /// Money, in minor units.
    pub units: u64,
}

/// What marks and audits compare with what was signed.
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// The numbers that only grow, as of one moment that is durable.
    async fn numbers(&self) -> StoreResult<StoreNumbers>;

    /// What has been debited from a grant.
    async fn spent(&self, capability_id: &str, grant_index: u32) -> StoreResult<Spent>;
}

/// How a call ended, as queries name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptOutcome {
    /// It ran.
    Allow,
    /// It was denied.
    Deny,
    /// It ran, and its tool server answered with an error: a denial that says so.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// Its end is not known.
    Incomplete,
}

/// Which receipts are asked for. Everything that is named must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiptQuery {
    /// The token.
    pub capability_id: Option<String>,
    /// The token's subject, in hex.
    pub subject: Option<String>,
    /// The name of the principal that called.
    pub principal: Option<String>,
    /// The server.
    pub tool_server: Option<String>,
    /// The tool.
    pub tool_name: Option<String>,
    /// How it ended.
    pub outcome: Option<ReceiptOutcome>,
    /// From this second on.
    pub since: Option<u64>,
    /// Up to and with this second.
    pub until: Option<u64>,
    /// At least this many minor units.
    pub min_cost: Option<u64>,
    /// At most this many minor units.
    pub max_cost: Option<u64>,
    /// In this currency.
    pub currency: Option<String>,
    /// In this trace.
    pub trace_id: Option<String>,
    /// After the row with this cursor, in the order asked for.
    pub cursor: Option<u64>,
    /// Newest first; oldest first otherwise.
    pub newest_first: bool,
    /// At most this many.
    pub limit: usize,
}

/// One receipt that answers a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptRow {
    /// Its place among all receipts of the store; what a next query begins after.
    pub cursor: u64,
    /// Its log.
    pub log_id: String,
    /// Its place in the log.
    pub seq: u64,
    /// The canonical form of the whole signed receipt.
    pub body: Vec<u8>,
}

/// Receipts by what they are about. Every answer includes all that was durable when it was asked
/// for. Answers are bounded: a short one is not the end, an empty one is.
#[async_trait]
pub trait ReceiptIndex: Send + Sync {
    /// At most `limit` receipts. When there may be more, the last row's cursor leads on.
    async fn query(&self, query: &ReceiptQuery) -> StoreResult<Vec<ReceiptRow>>;

    /// The receipt with this id.
    async fn find(&self, receipt_id: &str) -> StoreResult<Option<ReceiptRow>>;

    /// At most `limit` receipts of calls whose ids begin with these hex digits.
    async fn find_beginning(&self, digits: &str, limit: usize) -> StoreResult<Vec<ReceiptRow>>;
}

/// Everything that processes share through a store.
pub trait Store:
    RevocationStore
    + TokenStore
    + LogStore
    + AuditStore
    + ReceiptIndex
    + ApprovalStore
    + TaskStore
    + TaskIndex
{
}

impl<T> Store for T where
    T: RevocationStore
        + TokenStore
        + LogStore
        + AuditStore
        + ReceiptIndex
        + ApprovalStore
        + TaskStore
        + TaskIndex
{
}

/// A store that many hold.
pub type SharedStore = Arc<dyn Store>;
