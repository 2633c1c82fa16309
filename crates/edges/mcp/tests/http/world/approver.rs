//! Answers to calls that wait for an approval.

use async_trait::async_trait;
use chio_core::crypto::Signature;
use chio_core::governance::{ApprovalDecision, ApprovalToken};
use chio_core::signed::Signed as _;
use chio_cross_protocol::ApprovalRequest;
use chio_edge::UserApprovals;
use chio_testkit::kernel::ChioKernel;
use chio_testkit::kernel::store::{Answered, ApprovalQuery, ApprovalState};
use chio_testkit::key;
use chio_testkit::process::until;

use super::World;

/// The seed of the operator, who answers for calls that wait.
pub(super) const APPROVER: u8 = 6;
/// The seed of the key that answers for users of clients.
pub(super) const USER: u8 = 7;
/// For how many seconds an answer holds.
const LIFETIME: u64 = 300;

impl World {
    /// The request for approval of the only call that waits.
    #[track_caller]
    pub(crate) fn waiting(&self) -> ApprovalRequest {
        until("a call to wait", || self.all_waiting().pop())
    }

    /// The requests for approval of all calls that wait, newest first.
    pub(crate) fn all_waiting(&self) -> Vec<ApprovalRequest> {
        let state = Some(ApprovalState::Pending);
        let query = ApprovalQuery { state, limit: 100, cursor: None };
        let rows = self.embedded.runtime.block_on(self.embedded.kernel.store().approvals(&query));
        rows.unwrap().into_iter().map(|(_, approval)| approval.request).collect()
    }

    /// Answers a request as the operator does.
    pub(crate) fn answer(&self, request: &ApprovalRequest, approved: bool) -> Answered {
        self.embedded.runtime.block_on(answer(&self.embedded.kernel, request, approved, APPROVER))
    }

    /// Answers for the only call that waits.
    #[track_caller]
    pub(crate) fn answer_waiting(&self, approved: bool) {
        assert_eq!(self.answer(&self.waiting(), approved), Answered::Recorded);
    }
}

/// Records an answer that this key signs.
async fn answer(
    kernel: &ChioKernel,
    request: &ApprovalRequest,
    approved: bool,
    seed: u8,
) -> Answered {
    let now = kernel.clock().unix_seconds();
    let answer = ApprovalToken {
        id: format!("answer-to-{}", request.id),
        approver: key(seed).public_key().clone(),
        subject: request.subject.clone(),
        governed_intent_hash: request.intent_hash.clone(),
        request_id: request.request_id.clone(),
        threshold_proposal_hash: None,
        issued_at: now,
        expires_at: now + LIFETIME,
        decision: if approved { ApprovalDecision::Approved } else { ApprovalDecision::Denied },
        algorithm: None,
        signature: Signature::blank(),
    };
    let answer = answer.signed(&key(seed)).unwrap();
    kernel.store().answer(&request.id, &answer, now).await.unwrap()
}

/// Takes the word of a client's user.
pub(super) struct User {
    pub(super) kernel: ChioKernel,
    pub(super) may_ask: bool,
}

#[async_trait]
impl UserApprovals for User {
    fn may_ask(&self, _request: &ApprovalRequest) -> bool {
        self.may_ask
    }

    async fn answer(&self, request: &ApprovalRequest, approved: bool) -> Result<(), String> {
        match answer(&self.kernel, request, approved, USER).await {
            Answered::Recorded => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }
}
