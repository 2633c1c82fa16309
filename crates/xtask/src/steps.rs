//! The steps of a longer run: announced, timed, and remembered for the summary.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::output::say;
use crate::shell;

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// With what went wrong.
    Failed(String),
    /// With the reason.
    Skipped(String),
}

impl Outcome {
    /// The word for it, and what there is to add.
    pub(crate) fn describe(&self) -> (&'static str, &str) {
        match self {
            Self::Passed => ("passed", ""),
            Self::Failed(problem) => ("failed", problem),
            Self::Skipped(reason) => ("skipped", reason),
        }
    }
}

struct Step {
    name: &'static str,
    outcome: Outcome,
    time: Duration,
}

/// The steps so far.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

impl Steps {
    /// Runs a step; answers whether the way on is free.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> Result<Outcome>,
    ) -> bool {
        say!("\n== {name}");
        self.finish(name, step)
    }

    /// As [`Steps::run`], for a step that is one command.
    pub(crate) fn command(&mut self, name: &'static str, command: Command) -> bool {
        say!("\n== {name}: {}", shell::words(&command));
        self.finish(name, || shell::outcome(command))
    }

    /// Remembers a step that cannot be run.
    pub(crate) fn skip(&mut self, name: &'static str, reason: &str) {
        self.run(name, || Ok(Outcome::Skipped(reason.to_owned())));
    }

    fn finish(&mut self, name: &'static str, step: impl FnOnce() -> Result<Outcome>) -> bool {
        let start = Instant::now();
        let outcome = step();
        let time = start.elapsed();
        let outcome = self.record(name, outcome, time);
        let (word, remark) = outcome.describe();
        say!("== {name}: {word} in {}{}", seconds(time), after(": ", remark));
        !matches!(outcome, Outcome::Failed(_))
    }

    /// A step that could not be run to its end has failed.
    fn record(&mut self, name: &'static str, outcome: Result<Outcome>, time: Duration) -> &Outcome {
        let outcome = outcome.unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        &self.done.push_mut(Step { name, outcome, time }).outcome
    }

    /// The skipped steps, as `name: reason`.
    pub(crate) fn skipped(&self) -> Vec<String> {
        let reason = |step: &Step| match &step.outcome {
            Outcome::Skipped(reason) => Some(format!("{}: {reason}", step.name)),
            _ => None,
        };
        self.done.iter().filter_map(reason).collect()
    }

    /// One line for each step.
    pub(crate) fn table(&self) -> Vec<String> {
        let width = self.done.iter().map(|step| step.name.len()).max().unwrap_or_default();
        let row = |step: &Step| {
            let (word, remark) = step.outcome.describe();
            let time = seconds(step.time);
            format!("{word:7}  {:width$}  {time:>9}{}", step.name, after("  ", remark))
        };
        self.done.iter().map(row).collect()
    }

    /// How many steps passed, failed and were skipped.
    pub(crate) fn count(&self) -> (usize, usize, usize) {
        let count = |word| self.done.iter().filter(|s| s.outcome.describe().0 == word).count();
        (count("passed"), count("failed"), count("skipped"))
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// A remark behind its separator; nothing when there is no remark.
fn after(separator: &str, remark: &str) -> String {
    if remark.is_empty() { String::new() } else { format!("{separator}{remark}") }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Outcome, Steps};

    #[test]
    fn every_step_is_counted_once_and_an_error_is_a_failure() {
        let mut steps = Steps::default();
        for (name, outcome) in [
            ("good", Ok(Outcome::Passed)),
            ("bad", Ok(Outcome::Failed("exit status: 1".to_owned()))),
            ("broken", Err(anyhow::anyhow!("no such file"))),
            ("absent", Ok(Outcome::Skipped("not installed".to_owned()))),
        ] {
            steps.record(name, outcome, Duration::from_millis(1234));
        }
        assert_eq!(steps.count(), (1, 2, 1));
        assert_eq!(steps.skipped(), ["absent: not installed"]);
        assert_eq!(
            steps.table(),
            [
                "passed   good        1.2 s",
                "failed   bad         1.2 s  exit status: 1",
                "failed   broken      1.2 s  no such file",
                "skipped  absent      1.2 s  not installed",
            ]
        );
    }
}
