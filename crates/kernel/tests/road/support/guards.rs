//! Guards that say what they are told to.

use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Review, ReviewMode, Verdict};
use serde_json::Value;

use super::Journal;

type Check = dyn Fn(&GuardInput<'_>) -> Result<GuardOutcome, String> + Send + Sync;
type Look = dyn Fn(&Value) -> Result<Review, String> + Send + Sync;

/// A guard that says what it is told to.
#[derive(Clone)]
pub(crate) struct Scripted {
    name: String,
    check: Arc<Check>,
    mode: ReviewMode,
    look: Arc<Look>,
    hangs: bool,
    /// The member that it strikes out of calls that it is not asked about.
    strikes: Option<&'static str>,
    journal: Journal,
}

/// A guard that allows everything.
pub(crate) fn guard(name: &str) -> Scripted {
    Scripted {
        name: name.to_owned(),
        check: Arc::new(|_| Ok(Verdict::Allow.into())),
        mode: ReviewMode::Nothing,
        look: Arc::new(|_| Ok(Review::Pass)),
        hangs: false,
        strikes: None,
        journal: Journal::default(),
    }
}

impl Scripted {
    /// Checks calls like this.
    pub(crate) fn checks(
        mut self,
        check: impl Fn(&GuardInput<'_>) -> Result<GuardOutcome, String> + Send + Sync + 'static,
    ) -> Self {
        self.check = Arc::new(check);
        self
    }

    /// Says this of every call.
    pub(crate) fn says(self, verdict: Verdict) -> Self {
        self.checks(move |_| Ok(verdict.clone().into()))
    }

    /// Has the receipt keep the arguments with this member struck out.
    pub(crate) fn redacts(self, member: &'static str) -> Self {
        self.checks(move |input| {
            let mut kept = input.arguments.clone();
            kept[member] = Value::from("[redacted]");
            let evidence = Some(format!("a secret in `{member}`"));
            Ok(GuardOutcome { verdict: Verdict::Allow, evidence, redacted: Some(kept) })
        })
    }

    /// Looks at output like this.
    pub(crate) fn reviews(
        mut self,
        mode: ReviewMode,
        look: impl Fn(&Value) -> Result<Review, String> + Send + Sync + 'static,
    ) -> Self {
        (self.mode, self.look) = (mode, Arc::new(look));
        self
    }

    /// Strikes a member out of calls that it is not asked about.
    pub(crate) const fn strikes(mut self, member: &'static str) -> Self {
        self.strikes = Some(member);
        self
    }

    /// Never says anything.
    pub(crate) const fn hangs(mut self) -> Self {
        self.hangs = true;
        self
    }

    /// Tells this journal whenever it is asked.
    pub(crate) fn telling(mut self, journal: &Journal) -> Self {
        self.journal = journal.clone();
        self
    }
}

#[async_trait]
impl Guard for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        self.journal.note(format!("check {}", self.name));
        if self.hangs && self.mode == ReviewMode::Nothing {
            std::future::pending::<()>().await;
        }
        (self.check)(input)
    }

    fn redact(&self, arguments: &Value) -> Option<Value> {
        let member = self.strikes.filter(|member| arguments.get(member).is_some())?;
        let mut kept = arguments.clone();
        kept[member] = Value::from("[redacted]");
        Some(kept)
    }

    fn review_mode(&self) -> ReviewMode {
        self.mode
    }

    async fn review(&self, _input: &GuardInput<'_>, output: &Value) -> Result<Review, String> {
        self.journal.note(format!("review {}", self.name));
        if self.hangs {
            std::future::pending::<()>().await;
        }
        (self.look)(output)
    }
}
