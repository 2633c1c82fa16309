//! The guards that judge calls, in their order, under the name of the policy that asks for them.
//!
//! A call takes the whole pipeline when it begins and keeps it to its end, so that no call is
//! judged by half of one policy and half of another.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;

use crate::guard::{Guard, GuardInput, GuardOutcome, Review, ReviewMode, Verdict};
use crate::work::judged;

/// Guards in order, and the policy that they stand for.
#[derive(Clone)]
pub struct Pipeline {
    policy_hash: String,
    guards: Vec<Arc<dyn Guard>>,
    approval_timeout: Option<Duration>,
    reviews: bool,
    /// Some guard wants all of a stream at once.
    reviews_whole: bool,
}

impl Pipeline {
    /// These guards, under the name of their policy, which stands in every receipt.
    pub fn new(policy_hash: impl Into<String>, guards: Vec<Arc<dyn Guard>>) -> Self {
        let wants = |mode| guards.iter().any(|guard| guard.review_mode() == mode);
        let reviews_whole = wants(ReviewMode::Whole);
        Self {
            policy_hash: policy_hash.into(),
            reviews: reviews_whole || wants(ReviewMode::EachChunk),
            reviews_whole,
            guards,
            approval_timeout: None,
        }
    }

    /// No guard at all: whatever the token allows, runs.
    pub fn none() -> Self {
        Self::new("none", Vec::new())
    }

    /// The same, with another time that its calls wait for an approval than the kernel's.
    #[must_use]
    pub const fn with_approval_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.approval_timeout = timeout;
        self
    }

    /// The same, with another guard before all others.
    pub fn preceded_by(&self, guard: Arc<dyn Guard>) -> Self {
        let guards = std::iter::once(guard).chain(self.guards.iter().cloned()).collect();
        let preceded = Self::new(self.policy_hash.clone(), guards);
        preceded.with_approval_timeout(self.approval_timeout)
    }

    /// The guards, in order.
    pub fn guards(&self) -> &[Arc<dyn Guard>] {
        &self.guards
    }

    /// The name of the policy.
    pub fn policy_hash(&self) -> &str {
        &self.policy_hash
    }

    pub(crate) const fn approval_timeout(&self) -> Option<Duration> {
        self.approval_timeout
    }

    /// Whether some guard wants to see output.
    pub(crate) const fn reviews(&self) -> bool {
        self.reviews
    }

    /// Whether a stream has to be held back until it ends.
    pub(crate) const fn reviews_whole(&self) -> bool {
        self.reviews_whole
    }

    /// What a receipt may keep of arguments that no guard was asked about; none for all of them.
    pub fn redacted(&self, arguments: &Value) -> Option<Value> {
        let mut kept: Option<Value> = None;
        for guard in &self.guards {
            let less = guard.redact(kept.as_ref().unwrap_or(arguments));
            kept = less.or(kept);
        }
        kept
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guards: Vec<&str> = self.guards.iter().map(|guard| guard.name()).collect();
        let mut form = f.debug_struct("Pipeline");
        form.field("policy_hash", &self.policy_hash).field("guards", &guards);
        form.finish_non_exhaustive()
    }
}

/// Asks a guard about a call. Whatever it cannot say is a denial.
pub async fn ask(guard: &dyn Guard, input: &GuardInput<'_>) -> GuardOutcome {
    match judged(input.work, || guard.check(input)).await {
        _ if input.work.is_spent() => Verdict::Deny(input.work.reason()).into(),
        Ok(Ok(outcome)) => outcome,
        Ok(Err(problem)) => Verdict::Deny(format!("the guard failed: {problem}")).into(),
        Err(_) => Verdict::Deny("the guard panicked".to_owned()).into(),
    }
}

/// Asks a guard about output. Whatever it cannot say blocks.
pub async fn ask_about_output(guard: &dyn Guard, input: &GuardInput<'_>, output: &Value) -> Review {
    // Each output may cause as much work as the call.
    let work = input.work.anew();
    let input = GuardInput { work: &work, ..*input };
    match judged(&work, || guard.review(&input, output)).await {
        _ if work.is_spent() => Review::Block(work.reason()),
        Ok(Ok(said)) => said,
        Ok(Err(problem)) => Review::Block(format!("the guard failed: {problem}")),
        Err(_) => Review::Block("the guard panicked".to_owned()),
    }
}

/// What the guards of one call work out once and share: the first who needs it puts it here.
#[derive(Debug, Default)]
pub struct GuardMemo(OnceLock<Box<dyn Any + Send + Sync>>);

impl GuardMemo {
    /// What is there, or else what this makes. None when there is something of another kind.
    ///
    /// # Errors
    /// That of `make`, which leaves nothing there.
    pub fn get_or_make<T: Any + Send + Sync, E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Option<&T>, E> {
        let there = match self.0.get() {
            Some(there) => there,
            None => {
                let made = Box::new(make()?);
                self.0.get_or_init(|| made)
            }
        };
        Ok(there.downcast_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_guard_works_out_the_next_one_finds() {
        let memo = GuardMemo::default();
        assert_eq!(memo.get_or_make(|| Err::<u64, _>("not yet")), Err("not yet"));
        assert_eq!(memo.get_or_make(|| Ok::<_, ()>(7_u64)), Ok(Some(&7)));
        assert_eq!(memo.get_or_make(|| Ok::<_, ()>(8_u64)), Ok(Some(&7)));
        assert_eq!(memo.get_or_make(|| Ok::<_, ()>(String::new())), Ok(None));
    }
}
