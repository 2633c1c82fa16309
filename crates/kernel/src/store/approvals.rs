//! The inbox: calls that wait for an approver to say yes.

use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_core::governance::{ApprovalToken, GovernedTransactionIntent};
use chio_core::principal::NamedPrincipal;
use chio_core::receipt::ToolCallAction;
use serde::{Deserialize, Serialize};

use super::StoreResult;

/// What an approver is asked to approve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The name of this request for approval.
    pub id: String,
    /// The kernel's own name of the call, which the approval has to name.
    pub request_id: String,
    /// The subject key of the caller.
    pub subject: PublicKey,
    /// The id of the capability that the call is made with.
    pub capability_id: String,
    /// The server called.
    pub server_id: String,
    /// The tool called.
    pub tool_name: String,
    /// The arguments, as the receipt will keep them.
    pub action: ToolCallAction,
    /// The intent: the caller's own, or one that the kernel made of the call.
    pub intent: GovernedTransactionIntent,
    /// Its hash, which the approval has to name.
    pub intent_hash: String,
    /// Who asks for the approval: a guard's name, or the kernel's.
    pub asked_by: String,
    /// The reason, for the approver.
    pub reason: String,
    /// When the call began to wait, in Unix seconds.
    pub requested_at: u64,
    /// The first second in which the call waits no more.
    pub expires_at: u64,
    /// Who calls, where that is a principal with a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<NamedPrincipal<'static>>,
    /// The trace that the call belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Whose answers the kernel takes that asks; none in requests of earlier versions, which do not
    /// say. The kernel checks an answer all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<PublicKey>,
}

impl ApprovalRequest {
    /// Whether the kernel that asks takes answers of this approver, as far as the request says.
    #[must_use]
    pub fn takes_answers_of(&self, approver: &PublicKey) -> bool {
        self.approvers.is_empty() || self.approvers.contains(approver)
    }
}

/// How far a request for approval has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// No approver has answered.
    Pending,
    /// An approver said yes; the call goes on when its kernel sees it.
    Approved,
    /// An approver said no.
    Denied,
    /// No approver answered in time.
    Expired,
    /// The call ended for another reason: it was cancelled, or its kernel stopped.
    Cancelled,
    /// The yes was used: the call went on.
    Used,
}

impl ApprovalState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Approved, Self::Denied, Self::Expired, Self::Cancelled, Self::Used];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Used => "used",
        }
    }

    /// Whether the call still waits.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Approved)
    }
}

/// One row of the inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// What is asked.
    pub request: ApprovalRequest,
    /// How far it has come.
    pub state: ApprovalState,
    /// The signed answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ApprovalToken>,
    /// The receipt of the call, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt_id: Option<String>,
}

/// Which rows are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalQuery {
    /// In this state; any when absent.
    pub state: Option<ApprovalState>,
    /// After the row with this cursor.
    pub cursor: Option<u64>,
    /// At most this many.
    pub limit: usize,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// It is durable.
    Recorded,
    /// No such request.
    Unknown,
    /// The request is not pending any more.
    Over(ApprovalState),
}

/// The inbox, for approvers that answer and calls that wait.
#[async_trait]
pub trait ApprovalStore: Send + Sync {
    /// The request with this id.
    async fn approval(&self, id: &str) -> StoreResult<Option<Approval>>;

    /// Requests, newest first, each with the cursor that leads on behind it.
    async fn approvals(&self, query: &ApprovalQuery) -> StoreResult<Vec<(u64, Approval)>>;

    /// Records a signed answer to a pending request that has not expired, and grows the epoch of
    /// revocations, so that waiting kernels look.
    async fn answer(&self, id: &str, answer: &ApprovalToken, now: u64) -> StoreResult<Answered>;
}
