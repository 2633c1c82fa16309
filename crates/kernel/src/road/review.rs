//! Review: what guards say about a tool's output before it leaves.

use serde::Serialize;
use serde_json::Value;

use crate::call::{Denial, shortened};
use crate::guard::{GuardInput, Review, ReviewMode};
use crate::pipeline::{Pipeline, ask_about_output};

/// The guards that want to see output, and the call that they see it for.
pub(crate) struct Reviewers<'a> {
    pipeline: &'a Pipeline,
    pub(crate) input: &'a GuardInput<'a>,
}

/// Output that may leave.
#[derive(Debug, Default)]
pub(crate) struct Reviewed {
    /// The output, maybe another than the tool's.
    pub(crate) value: Value,
    /// What the guards remark.
    pub(crate) remarks: Remarks,
}

/// How many notes of guards a receipt keeps.
const MAX_NOTES: usize = 16;

/// What guards remark about output that leaves.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Remarks {
    /// The guards that changed it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sanitized: Vec<String>,
    /// What they note.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Note>,
}

/// What one guard notes.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Note {
    guard: String,
    note: String,
}

impl Remarks {
    pub(crate) const fn is_empty(&self) -> bool {
        self.sanitized.is_empty() && self.notes.is_empty()
    }

    /// Adds what is not there yet: a stream is looked at chunk by chunk.
    pub(crate) fn extend(&mut self, more: Self) {
        for name in more.sanitized {
            if !self.sanitized.contains(&name) {
                self.sanitized.push(name);
            }
        }
        for note in more.notes {
            if self.notes.len() < MAX_NOTES && !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

impl<'a> Reviewers<'a> {
    pub(crate) const fn new(pipeline: &'a Pipeline, input: &'a GuardInput<'a>) -> Self {
        Self { pipeline, input }
    }

    /// Whether any guard looks at output.
    pub(crate) const fn look(&self) -> bool {
        self.pipeline.reviews()
    }

    /// Whether a stream has to be held back until it ends.
    pub(crate) const fn want_whole(&self) -> bool {
        self.pipeline.reviews_whole()
    }

    /// Shows output to the guards that want this much of it.
    pub(crate) async fn review(&self, value: Value, mode: ReviewMode) -> Result<Reviewed, Denial> {
        let mut reviewed = Reviewed { value, remarks: Remarks::default() };
        if !self.pipeline.reviews() {
            return Ok(reviewed);
        }
        let guards = self.pipeline.guards().iter();
        for guard in guards.filter(|guard| guard.review_mode() == mode) {
            let name = guard.name();
            match ask_about_output(&**guard, self.input, &reviewed.value).await {
                Review::Pass => {}
                Review::Note(note) => {
                    let (guard, note) = (name.to_owned(), shortened(note));
                    reviewed.remarks.notes.push(Note { guard, note });
                }
                Review::Replace(value) => {
                    reviewed.value = value;
                    reviewed.remarks.sanitized.push(name.to_owned());
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
        reviewed.remarks.extend(whole.remarks);
        Ok(reviewed)
    }
}
