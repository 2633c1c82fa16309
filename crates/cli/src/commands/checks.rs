//! The checks of a verification, as lines for people and as reasons for scripts.

use std::fmt::Display;

use anyhow::Result;
use serde::Serialize;

use crate::io::Io;
use crate::outcome::{Outcome, Refused};

/// The checks so far.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    /// Name and finding.
    lines: Vec<(&'static str, String)>,
    /// Every failing check with its reason.
    errors: Vec<String>,
}

impl Checks {
    /// Nothing can be checked: the report in which nothing holds.
    pub(crate) fn unreadable<T: Default>(&mut self, refused: &Refused) -> T {
        self.errors.push(refused.to_string());
        T::default()
    }

    /// Whether every check holds.
    const fn hold(&self) -> bool {
        self.errors.is_empty()
    }

    /// Adds a line that is no check.
    pub(crate) fn note(&mut self, name: &'static str, finding: impl Display) {
        self.lines.push((name, finding.to_string()));
    }

    /// Adds a check and tells whether it holds.
    pub(crate) fn add<E: Display>(
        &mut self,
        name: &'static str,
        check: Result<impl Display, E>,
    ) -> bool {
        match check {
            Ok(finding) => {
                self.note(name, finding);
                true
            }
            Err(error) => {
                self.fail(name, "INVALID", error);
                false
            }
        }
    }

    /// Adds something that is wrong and has no line of its own.
    pub(crate) fn problem(&mut self, problem: impl Display) {
        self.errors.push(problem.to_string());
    }

    /// Adds a check of whether a key is trusted.
    pub(crate) fn trust(&mut self, name: &'static str, trusted: bool, problem: impl Display) {
        if trusted {
            self.note(name, "trusted");
        } else {
            self.fail(name, "NOT TRUSTED", problem);
        }
    }

    fn fail(&mut self, name: &'static str, finding: &str, problem: impl Display) {
        self.note(name, finding);
        self.errors.push(format!("{name}: {problem}"));
    }

    /// Tells scripts or people, and gives the outcome.
    pub(crate) fn finish<T: Serialize>(
        &self,
        io: &mut Io<'_>,
        json: bool,
        report: &T,
    ) -> Result<Outcome> {
        let valid = self.hold();
        if json {
            io.json(&Document { report, valid, errors: &self.errors })?;
            return Ok(Outcome::of(valid));
        }
        for (name, finding) in &self.lines {
            io.field(name, finding)?;
        }
        io.result(if valid { "valid" } else { "NOT VALID" }, "")?;
        for error in &self.errors {
            io.complain("error", error);
        }
        Ok(Outcome::of(valid))
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a, T> {
    #[serde(flatten)]
    report: &'a T,
    valid: bool,
    errors: &'a [String],
}

/// Splits what was read from what was refused; whatever could not be read at all stays an error.
pub(crate) fn or_refused<T>(read: Result<T>) -> Result<Result<T, Refused>> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(error) => error.downcast().map(Err),
    }
}
