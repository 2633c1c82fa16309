//! Review: what guards say about a tool's output before it leaves.

use serde_json::Value;

use crate::call::Denial;
use crate::guard::{GuardInput, Review, ReviewMode};
use crate::pipeline::{Pipeline, ask_about_output};

/// The guards that want to see output, and the call that they see it for.
#[derive(Debug)]
pub(crate) struct Reviewers<'a> {
    pipeline: &'a Pipeline,
    input: &'a GuardInput<'a>,
}

/// Output that may leave.
#[derive(Debug, Default)]
pub(crate) struct Reviewed {
    /// The output, maybe another than the tool's.
    pub(crate) value: Value,
    /// The guards that changed it.
    pub(crate) sanitized_by: Vec<String>,
}

impl<'a> Reviewers<'a> {
    pub(crate) const fn new(pipeline: &'a Pipeline, input: &'a GuardInput<'a>) -> Self {
        Self { pipeline, input }
    }

    /// Whether a stream has to be held back until it ends.
    pub(crate) const fn want_whole(&self) -> bool {
        self.pipeline.reviews_whole()
    }

    /// Shows output to the guards that want this much of it.
    pub(crate) async fn review(&self, value: Value, mode: ReviewMode) -> Result<Reviewed, Denial> {
        let mut reviewed = Reviewed { value, sanitized_by: Vec::new() };
        if !self.pipeline.reviews() {
            return Ok(reviewed);
        }
        let guards = self.pipeline.guards().iter();
        for guard in guards.filter(|guard| guard.review_mode() == mode) {
            let name = guard.name();
            match ask_about_output(&**guard, self.input, &reviewed.value).await {
                Review::Pass => {}
                Review::Replace(value) => {
                    reviewed.value = value;
                    reviewed.sanitized_by.push(name.to_owned());
                }
                Review::Block(reason) => return Err(Denial::by_guard(name, reason)),
            }
        }
        Ok(reviewed)
    }

    /// Shows a whole value to every guard that wants to see any.
    pub(crate) async fn review_all(&self, value: Value) -> Result<Reviewed, Denial> {
        let mut reviewed = self.review(value, ReviewMode::EachChunk).await?;
        let whole = self.review(std::mem::take(&mut reviewed.value), ReviewMode::Whole).await?;
        reviewed.value = whole.value;
        reviewed.sanitized_by.extend(whole.sanitized_by);
        Ok(reviewed)
    }
}
