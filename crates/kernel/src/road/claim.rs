//! Claim: a deferred task becomes a call, once.

use chio_core::canonical::Written;

use super::Draft;
use super::draft::MAX_UNVERIFIED;
use crate::call::ToolCall;
use crate::caller::Caller;
use crate::error::KernelError;
use crate::kernel::Inner;
use crate::store::{Intent, Opened, Opening, TaskClaim, TaskRefused};

impl Inner {
    /// Takes a task for this call. From then on it ends with this call's receipt, or with the one
    /// that recovery signs.
    pub(super) async fn claim(
        &self,
        id: String,
        call: &ToolCall,
        caller: &dyn Caller,
        draft: &mut Draft,
    ) -> Result<(), KernelError> {
        // Others may run what this kernel cannot take on now. What will not run leaves its receipt.
        if call.refusal.is_none() && !caller.cancellation().is_cancelled() {
            self.check_serving().await.map_err(KernelError::NotNow)?;
        }
        let claim = TaskClaim { id, owner: call.agent.clone(), now: draft.record.started_at };
        // The token is not verified yet; a receipt about no more than the claim says so.
        let mut metadata = draft.metadata.clone();
        metadata.distrust(MAX_UNVERIFIED);
        let intent = Intent { metadata: Written::of(&metadata)?, ..draft.intent()? };
        let opened = self.ledger.open(Opening {
            intent,
            resumes: None,
            proofs: Vec::new(),
            waits_for: None,
            claims: Some(claim),
        });
        match opened.await? {
            Opened::At(intent) => {
                draft.open = Some(intent.into());
                Ok(())
            }
            Opened::NotClaimed(refused) => Err(KernelError::NotClaimed(refused)),
            // Nothing else was asked for.
            _ => Err(KernelError::NotClaimed(TaskRefused::Unknown)),
        }
    }
}
