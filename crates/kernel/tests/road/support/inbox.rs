//! The inbox as approvers see it, and calls that wait in it.

use std::sync::Arc;
use std::time::Duration;

use chio_core::governance::ApprovalToken;
use chio_kernel::store::{Answered, Approval, ApprovalQuery, ApprovalState};
use chio_kernel::{Clock as _, KernelError, ToolCall};
use tokio::task::JoinHandle;

use super::authority::yes;
use super::world::Ended;
use super::{TestCaller, World};

/// A call that waits for an approval.
pub(crate) struct Parked {
    pub(crate) request_id: String,
    pub(crate) approval: Approval,
    pub(crate) caller: Arc<TestCaller>,
    call: JoinHandle<Result<Ended, KernelError>>,
}

impl World {
    /// Every row of the inbox, newest first.
    pub(crate) async fn inbox(&self) -> Vec<Approval> {
        let query = ApprovalQuery { limit: 1000, ..ApprovalQuery::default() };
        let rows = self.store.approvals(&query).await.unwrap();
        rows.into_iter().map(|(_, approval)| approval).collect()
    }

    /// A row of the inbox as it is now.
    pub(crate) async fn row(&self, id: &str) -> Approval {
        self.store.approval(id).await.unwrap().unwrap()
    }

    /// Starts a call and waits until it is in the inbox.
    pub(crate) async fn park(&self, call: ToolCall) -> Parked {
        let (request_id, caller) = (call.request_id.clone(), Arc::new(self.caller()));
        let call = self.spawn(call, &caller);
        for _ in 0..5000 {
            let found = self.inbox().await.into_iter().find(|row| {
                row.request.request_id == request_id && row.state == ApprovalState::Pending
            });
            if let Some(approval) = found {
                return Parked { request_id, approval, caller, call };
            }
            assert!(!call.is_finished(), "it did not wait: {:?}", call.await);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("the call never came into the inbox");
    }

    /// Answers a request in the inbox.
    pub(crate) async fn answer(&self, parked: &Parked, answer: &ApprovalToken) -> Answered {
        let (id, now) = (&parked.approval.request.id, self.clock.unix_seconds());
        self.store.answer(id, answer, now).await.unwrap()
    }

    /// Says yes to a call that waits.
    pub(crate) async fn approve(&self, parked: &Parked) -> ApprovalToken {
        let answer = yes(&parked.approval.request);
        assert_eq!(self.answer(parked, &answer).await, Answered::Recorded);
        answer
    }

    /// What became of a call that waited, and of its row.
    pub(crate) async fn ended(&self, parked: Parked) -> (Ended, Approval) {
        let ended = parked.call.await.unwrap().unwrap();
        self.check(&parked.request_id, &ended).await;
        let row = self.row(&parked.approval.request.id).await;
        assert_eq!(row.receipt_id.as_deref(), Some(&*ended.receipt.id), "the row names it");
        assert_eq!(row.request, parked.approval.request, "what was asked stays");
        assert_eq!(self.open_intents().await, 0);
        (ended, row)
    }
}
