//! Who may do what with a deferred task, in any store.

use chio_core::crypto::PublicKey;
use chio_kernel::store::{TaskEnd, TaskRefused, TaskState};

use crate::bounds::RESULT_MEMORY;

/// What decides about a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing<'a> {
    pub(crate) owner: &'a PublicKey,
    pub(crate) state: TaskState,
    pub(crate) expires_at: u64,
}

impl Standing<'_> {
    /// Whether the task is gone for every caller.
    pub(crate) fn is_gone(&self, now: u64) -> bool {
        now >= self.expires_at && self.state != TaskState::Running
    }

    /// Lets its owner see it.
    pub(crate) fn see(&self, owner: &PublicKey, now: u64) -> Result<(), TaskRefused> {
        if self.is_gone(now) {
            return Err(TaskRefused::Unknown);
        }
        if self.owner != owner {
            return Err(TaskRefused::NotOwner);
        }
        Ok(())
    }

    /// Lets a kernel run it for its owner.
    pub(crate) fn claim(&self, owner: &PublicKey, now: u64) -> Result<(), TaskRefused> {
        self.see(owner, now)?;
        match self.state {
            TaskState::Waiting => Ok(()),
            TaskState::Running => Err(TaskRefused::Running),
            over => Err(TaskRefused::Over(over)),
        }
    }

    /// Lets its owner cancel it. Tells whether that changes anything.
    pub(crate) fn cancel(&self, owner: &PublicKey, now: u64) -> Result<bool, TaskRefused> {
        self.see(owner, now)?;
        match self.state {
            TaskState::Waiting => Ok(true),
            TaskState::Cancelled => Ok(false),
            TaskState::Running => Err(TaskRefused::Running),
            over => Err(TaskRefused::Over(over)),
        }
    }
}

/// How a task ends with the intent that ran it, and what is left of it.
pub(crate) fn ended(end: Option<&TaskEnd>) -> (TaskState, Option<&[u8]>) {
    match end {
        Some(end) if end.state.is_over() => (end.state, Some(&end.result)),
        // Nothing would end it any more.
        Some(end) => (TaskState::Failed, Some(&end.result)),
        None => (TaskState::Failed, None),
    }
}

/// The first second in which a task that ended then may be gone, whatever its own time was.
pub(crate) const fn fetchable_until(closed_at: u64) -> u64 {
    closed_at.saturating_add(RESULT_MEMORY)
}

#[cfg(test)]
mod tests {
    use chio_core::crypto::Keypair;
    use chio_kernel::store::{TaskEnd, TaskRefused, TaskState};

    use super::{Standing, ended};

    /// What comes of claiming and of cancelling a task in this state.
    fn check(
        state: TaskState,
        now: u64,
        claimed: &Result<(), TaskRefused>,
        cancelled: &Result<bool, TaskRefused>,
    ) {
        let key = Keypair::from_seed(&[1; 32]);
        let owner = key.public_key();
        let standing = Standing { owner, state, expires_at: 10 };
        assert_eq!(&standing.claim(owner, now), claimed, "{state:?} at {now}");
        assert_eq!(&standing.cancel(owner, now), cancelled, "{state:?} at {now}");
    }

    #[test]
    fn a_task_is_claimed_and_cancelled_while_it_waits() {
        let over = |state| TaskRefused::Over(state);
        check(TaskState::Waiting, 9, &Ok(()), &Ok(true));
        check(TaskState::Running, 9, &Err(TaskRefused::Running), &Err(TaskRefused::Running));
        check(TaskState::Cancelled, 9, &Err(over(TaskState::Cancelled)), &Ok(false));
        for state in [TaskState::Completed, TaskState::Failed] {
            check(state, 9, &Err(over(state)), &Err(over(state)));
        }
    }

    #[test]
    fn what_has_expired_is_gone_unless_it_runs() {
        for state in
            [TaskState::Waiting, TaskState::Completed, TaskState::Failed, TaskState::Cancelled]
        {
            check(state, 10, &Err(TaskRefused::Unknown), &Err(TaskRefused::Unknown));
        }
        check(TaskState::Running, 10, &Err(TaskRefused::Running), &Err(TaskRefused::Running));
    }

    #[test]
    fn others_see_nothing_of_a_task_but_that_it_is_not_theirs() {
        let keys = [Keypair::from_seed(&[1; 32]), Keypair::from_seed(&[2; 32])];
        let (owner, state) = (keys[0].public_key(), TaskState::Completed);
        let standing = Standing { owner, state, expires_at: 10 };
        let other = keys[1].public_key();
        assert_eq!(standing.claim(other, 9), Err(TaskRefused::NotOwner));
        assert_eq!(standing.cancel(other, 9), Err(TaskRefused::NotOwner));
        assert_eq!(standing.see(other, 10), Err(TaskRefused::Unknown));
    }

    #[test]
    fn a_task_never_stays_open_when_its_intent_has_ended() {
        let end = |state| TaskEnd { state, result: vec![1] };
        let result = Some([1].as_slice());
        assert_eq!(ended(None), (TaskState::Failed, None));
        assert_eq!(ended(Some(&end(TaskState::Completed))), (TaskState::Completed, result));
        assert_eq!(ended(Some(&end(TaskState::Waiting))), (TaskState::Failed, result));
    }
}
