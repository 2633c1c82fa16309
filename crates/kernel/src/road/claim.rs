//! Claim: a deferred task becomes a call, once.

use super::Draft;
use crate::call::ToolCall;
use crate::error::KernelError;
use crate::kernel::Inner;
use crate::store::{Opened, Opening, TaskClaim, TaskRefused};

impl Inner {
    /// Takes a task for this call. From then on it ends with this call's receipt, or with the one
    /// that recovery signs.
    pub(super) async fn claim(
        &self,
        id: String,
        call: &ToolCall,
        draft: &mut Draft,
    ) -> Result<(), KernelError> {
        let claim = TaskClaim { id, owner: call.agent.clone(), now: draft.started_at };
        let opened = self.ledger.open(Opening {
            intent: draft.intent(self)?,
            resumes: None,
            proofs: Vec::new(),
            waits_for: None,
            claims: Some(claim),
        });
        match opened.await? {
            Opened::At(intent) => {
                draft.intent = Some(intent);
                draft.claimed = true;
                Ok(())
            }
            Opened::NotClaimed(refused) => Err(KernelError::NotClaimed(refused)),
            // Nothing else was asked for.
            _ => Err(KernelError::NotClaimed(TaskRefused::Unknown)),
        }
    }
}
