//! What may become of a request for approval, in any store.

use chio_core::governance::ApprovalDecision;
use chio_kernel::store::{Answered, ApprovalRequest, ApprovalState, StoreError, StoreResult};

use crate::bounds::{MAX_OPEN_APPROVALS, MAX_OPEN_BYTES_OF_SUBJECT, MAX_OPEN_OF_SUBJECT};

/// A request for approval as it is written down.
pub(crate) fn body(request: &ApprovalRequest) -> StoreResult<Vec<u8>> {
    serde_json::to_vec(request).map_err(|error| {
        StoreError::Refused(format!("a request for approval has no form: {error}"))
    })
}

/// What is open in the inbox, but for what a new request takes the place of.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load {
    /// Requests in all.
    pub(crate) all: u64,
    /// Requests of the subject that asks.
    pub(crate) of_subject: u64,
    /// The bytes of those.
    pub(crate) bytes_of_subject: u64,
}

impl Load {
    /// Whether there is no room for another request of this size.
    pub(crate) const fn is_full_for(&self, size: u64) -> bool {
        self.all >= MAX_OPEN_APPROVALS
            || self.of_subject >= MAX_OPEN_OF_SUBJECT
            || self.bytes_of_subject.saturating_add(size) > MAX_OPEN_BYTES_OF_SUBJECT
    }
}

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

/// The state of an unanswered request when its call has ended. Never one that is open: it would
/// never be closed.
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

    use super::{Load, answer, unanswered};

    #[test]
    fn there_is_room_up_to_each_bound() {
        let cases = [
            (Load::default(), 16 << 20, false),
            (Load::default(), (16 << 20) + 1, true),
            (Load { all: 4095, ..Load::default() }, 0, false),
            (Load { all: 4096, ..Load::default() }, 0, true),
            (Load { of_subject: 63, ..Load::default() }, 0, false),
            (Load { of_subject: 64, ..Load::default() }, 0, true),
            (Load { bytes_of_subject: 1, ..Load::default() }, (16 << 20) - 1, false),
            (Load { bytes_of_subject: 1, ..Load::default() }, 16 << 20, true),
            (Load { bytes_of_subject: 1, ..Load::default() }, u64::MAX, true),
        ];
        for (load, size, is_full) in cases {
            assert_eq!(load.is_full_for(size), is_full, "{load:?} and {size}");
        }
    }

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
