//! Reserve: budgets are debited and the intent is made durable before anything runs.

use std::sync::Arc;

use chio_core::manifest::ToolDefinition;
use chio_core::registry::ErrorCode;

use super::Draft;
use super::draft::Open;
use super::guarding::Guarded;
use super::verify::{deny_store, deny_token};
use crate::call::Denial;
use crate::error::KernelError;
use crate::kernel::{Inner, Server};
use crate::revocation;
use crate::store::{Exhausted, Reservation, Reserved};

/// The kernel's word that one call may run: all before it was checked, and what it needs is
/// reserved. Only the kernel makes one, for one call.
#[derive(Debug)]
pub struct Permit {
    request_id: String,
}

impl Permit {
    /// The call that it is for.
    pub fn request_id(&self) -> &str {
        &self.request_id
    }
}

/// What a call runs with.
pub(crate) struct Held {
    pub(super) server: Arc<Server>,
    pub(super) tool: Arc<ToolDefinition>,
    /// The token and its ancestors.
    pub(super) authority: Vec<String>,
}

impl Inner {
    /// The stage reserve.
    pub(super) async fn reserve(
        &self,
        guarded: Guarded,
        draft: &mut Draft,
    ) -> Result<(Permit, Held), Denial> {
        draft.note_governed().map_err(|error| unwritten(&error))?;
        let authorized = guarded.authorized();
        // Guards may have taken their time.
        let window = authorized.known().token.validity().check(self.clock.unix_seconds());
        window.map_err(|error| deny_token(&error.into()))?;
        let server = Arc::clone(authorized.server());
        let tool = Arc::clone(&authorized.tool().definition);
        let alternatives = authorized.alternatives();
        let counts = alternatives.iter().any(|way| !way.holds.is_empty() || way.price.is_some());
        let authority = authorized.known().authority.clone();
        let uses = !draft.proofs.is_empty() || draft.approval.is_some() || draft.open.is_some();
        if counts || uses || authorized.tool().has_side_effects {
            let alternatives = alternatives.to_vec();
            let reservation = Reservation {
                intent: draft.intent().map_err(|error| unwritten(&error))?,
                alternatives,
                authority: authority.clone(),
                resumes: draft.intent_id(),
                proofs: std::mem::take(&mut draft.proofs),
                approval: draft.approval.take(),
                task: draft.task.clone(),
            };
            self.begin(reservation, draft).await?;
        } else {
            self.revocations
                .catch_up(&*self.store, self.clock.monotonic())
                .await
                .map_err(|error| deny_store(&error))?;
            self.check_still(&authority)?;
            draft.metadata.set_grant(alternatives.first().map_or(0, |way| way.grant_index));
        }
        Ok((
            Permit { request_id: draft.record.request_id.clone() },
            Held { server, tool, authority },
        ))
    }

    fn check_still(&self, authority: &[String]) -> Result<(), Denial> {
        self.revocations.check_running(self.clock.monotonic(), self.config.revocation_max_age)?;
        self.revocations.check(authority)
    }

    /// Makes the intent durable and takes what it holds.
    async fn begin(&self, reservation: Reservation, draft: &mut Draft) -> Result<(), Denial> {
        let alternatives = reservation.alternatives.clone();
        let presented = reservation.intent.capability_id.clone();
        let reserved = self.ledger.reserve(reservation).await;
        match reserved.map_err(|error| deny_store(&error))? {
            Reserved::Held { intent, alternative } => {
                let taken = alternatives.into_iter().nth(alternative);
                if let Some(taken) = &taken {
                    draft.metadata.set_grant(taken.grant_index);
                }
                let waited = draft.open.take().and_then(|open| open.waited);
                draft.open = Some(Open { intent, waited, taken });
                // From now on it ends with the intent.
                draft.task = None;
                Ok(())
            }
            refused => Err(refusal(refused, &presented)),
        }
    }
}

/// The denial of a call that cannot be written down.
pub(crate) fn unwritten(error: &KernelError) -> Denial {
    Denial::by_kernel(ErrorCode::InternalError, error.to_string())
}

/// The denial of a call that could not reserve.
pub(crate) fn refusal(refused: Reserved, presented: &str) -> Denial {
    match refused {
        Reserved::Revoked(id) => revocation::revoked(&id, id == presented),
        Reserved::Stopped(reason) => revocation::stopped(&reason),
        Reserved::Exhausted { capability_id, grant_index, what } => {
            let what = match what {
                Exhausted::Invocations => "invocation budget",
                Exhausted::Cost => "cost budget",
            };
            let reason = format!("{what} exhausted for grant {grant_index} of `{capability_id}`");
            Denial::by_kernel(ErrorCode::BudgetExhausted, reason)
        }
        Reserved::Refused(refused) => super::possession::refusal(refused),
        Reserved::IntentClosed => {
            Denial::by_kernel(ErrorCode::InternalError, "the call was taken for abandoned")
        }
        Reserved::Held { .. } => {
            Denial::by_kernel(ErrorCode::InternalError, "a reservation that was not asked for")
        }
    }
}
