//! What may become of a request for approval, whatever keeps the inbox.

use chio_core::governance::ApprovalDecision;
use chio_kernel::store::{Answered, ApprovalState, StoreError};

/// The state that an answer leads to, or why it comes too late.
pub(crate) fn answer(
    state: ApprovalState,
    expires_at: u64,
    decision: ApprovalDecision,
    now: u64,
) -> Result<ApprovalState, Answered> {
    if state != ApprovalState::Pending {
        return Err(Answered::Over(state));
    }
    // The row stays as it is: the kernel that waits closes it with its receipt.
    if now >= expires_at {
        return Err(Answered::Over(ApprovalState::Expired));
    }
    Ok(match decision {
        ApprovalDecision::Approved => ApprovalState::Approved,
        ApprovalDecision::Denied => ApprovalState::Denied,
    })
}

/// The state of an unanswered request when its call has ended. Never one that is open: nobody would
/// close it any more.
pub(crate) const fn unanswered(asked: ApprovalState) -> ApprovalState {
    if asked.is_open() { ApprovalState::Cancelled } else { asked }
}

/// The refusal of a request for approval whose name another has.
pub(crate) fn name_taken() -> StoreError {
    StoreError::Refused("expected a new name for a request for approval, found one in use".into())
}

#[cfg(test)]
mod tests {
    use chio_core::governance::ApprovalDecision;
    use chio_kernel::store::{Answered, ApprovalState};

    use super::{answer, unanswered};

    #[test]
    fn only_what_is_pending_and_in_time_is_answered() {
        for state in ApprovalState::ALL {
            let expected = match state {
                ApprovalState::Pending => Ok(ApprovalState::Denied),
                other => Err(Answered::Over(other)),
            };
            assert_eq!(answer(state, 10, ApprovalDecision::Denied, 9), expected, "{state:?}");
        }
        let late = answer(ApprovalState::Pending, 10, ApprovalDecision::Approved, 10);
        assert_eq!(late, Err(Answered::Over(ApprovalState::Expired)));
    }

    #[test]
    fn nothing_stays_open_when_its_call_has_ended() {
        for state in ApprovalState::ALL {
            assert!(!unanswered(state).is_open(), "{state:?}");
        }
        assert_eq!(unanswered(ApprovalState::Expired), ApprovalState::Expired);
    }
}
