//! What is wrong with a document.

use std::cell::RefCell;
use std::fmt;

use crate::node::Place;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The location.
    pub place: Place,
    /// What was expected, and what came.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Everything that is wrong with a document, in the order in which it was found.
#[derive(Debug, Default)]
pub struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    /// Adds one.
    pub fn add(&self, place: &Place, message: impl Into<String>) {
        self.0.borrow_mut().push(Problem { place: place.clone(), message: message.into() });
    }

    /// Whether there is none so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// All of them, by their place.
    pub fn into_sorted(self) -> Vec<Problem> {
        let mut problems = self.0.into_inner();
        problems.sort_by(|one, other| {
            let key = |it: &Problem| (it.place.file.clone(), it.place.line, it.place.column);
            key(one).cmp(&key(other))
        });
        problems.dedup();
        problems
    }
}
