//! Who may do what with a task, and how long it is there, in any store.

use chio_core::crypto::PublicKey;
use chio_kernel::store::{NEVER, NewTask, TaskEnd, TaskQuota, TaskRefused, TaskState};

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
            TaskState::Asking => Err(TaskRefused::Asking),
            over => Err(TaskRefused::Over(over)),
        }
    }

    /// Lets its owner answer what it asks.
    pub(crate) fn answer(&self, owner: &PublicKey, now: u64) -> Result<(), TaskRefused> {
        self.see(owner, now)?;
        match self.state {
            TaskState::Asking => Ok(()),
            TaskState::Waiting | TaskState::Running => Err(TaskRefused::Running),
            over => Err(TaskRefused::Over(over)),
        }
    }

    /// Lets its owner cancel it. Tells whether that changes anything.
    pub(crate) fn cancel(&self, owner: &PublicKey, now: u64) -> Result<bool, TaskRefused> {
        self.see(owner, now)?;
        match self.state {
            TaskState::Waiting | TaskState::Asking => Ok(true),
            TaskState::Cancelled => Ok(false),
            TaskState::Running => Err(TaskRefused::Running),
            over => Err(TaskRefused::Over(over)),
        }
    }
}

/// How a task ends with the intent that ran it, and what is left of it.
pub(crate) fn ended(end: Option<&TaskEnd>) -> (TaskState, Option<&[u8]>) {
    match end {
        Some(end) if end.state.is_over() || end.state == TaskState::Asking => {
            (end.state, Some(&end.result))
        }
        // Nothing would end it any more.
        Some(end) => (TaskState::Failed, Some(&end.result)),
        None => (TaskState::Failed, None),
    }
}

/// The first second in which a task is gone that came into this state then.
pub(crate) fn gone_at(state: TaskState, then: u64, expires_at: u64, kept_for: u64) -> u64 {
    match (state, kept_for) {
        (TaskState::Asking, _) => NEVER,
        (_, 0) => expires_at.max(then.saturating_add(RESULT_MEMORY)),
        (_, kept_for) => then.saturating_add(kept_for),
    }
}

/// About how many bytes a task takes.
pub(crate) fn size_of(task: &NewTask, result: Option<&[u8]>) -> u64 {
    let bytes = task.request.len() + task.record.len() + result.map_or(0, <[u8]>::len);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// How much of an owner's quota may be new before it is looked at again: one part in this many.
const LOOK_SHARE: usize = 16;

/// The most tasks that may be new.
const MOST_NEW: usize = 256;

/// What one owner has got since its quota was last looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unlooked {
    tasks: usize,
    bytes: u64,
}

impl Unlooked {
    /// Notes a task that has ended. True when it is time to look: to count is a step for each task.
    pub(crate) fn note(&mut self, quota: &TaskQuota, bytes: u64) -> bool {
        self.tasks += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let is_time = self.tasks >= (quota.ended / LOOK_SHARE).clamp(1, MOST_NEW)
            || self.bytes > quota.bytes / 16;
        if is_time {
            *self = Self::default();
        }
        is_time
    }
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
        for state in TaskState::ALL.into_iter().filter(|state| *state != TaskState::Running) {
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
