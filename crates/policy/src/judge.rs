//! What becomes of a call, guard by guard: the explanation of a decision.
//!
//! Every guard is asked by the kernel's own function. The kernel stops at the first denial; here
//! the rest is asked as well, so that the explanation has every objection.

use std::sync::Arc;

use chio_kernel::{Guard, GuardMemo, Review, ReviewMode, Verdict, Work, ask, ask_about_output};
use serde_json::Value;

use crate::example::ExampleCall;

/// What a decision comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Decision {
    /// The call may go on as it is.
    Allow,
    /// It may not, or its output may not leave.
    Deny,
    /// An approver has to approve it.
    Ask,
    /// It may go on, but a part of it is taken out of the receipt or of the output.
    Redact,
}

impl Decision {
    /// The word for it.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The decision of one guard.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its name.
    pub guard: String,
    /// Whether it is about the output.
    pub about_output: bool,
    /// The decision.
    pub decision: Decision,
    /// The reason.
    pub reason: Option<String>,
    /// What it would note in the receipt.
    pub evidence: Option<String>,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What it comes to.
    pub decision: Decision,
    /// The guard that decides, unless all allow.
    pub by: Option<String>,
    /// The reason.
    pub reason: Option<String>,
    /// The decision of each guard, in order.
    pub steps: Vec<Step>,
    /// The output as it would leave, where there is one that may.
    pub output: Option<Value>,
}

/// Asks every guard in order.
pub(crate) async fn judge(guards: &[Arc<dyn Guard>], call: &ExampleCall) -> Judged {
    let memo = GuardMemo::default();
    let work = Work::default();
    let input = call.input(&memo, &work);
    let mut steps = Vec::with_capacity(guards.len());
    for guard in guards {
        let said = ask(&**guard, &input).await;
        let (decision, reason) = match said.verdict {
            Verdict::Allow if said.redacted.is_some() => {
                (Decision::Redact, Some("the receipt keeps the arguments redacted".to_owned()))
            }
            Verdict::Allow => (Decision::Allow, None),
            Verdict::Deny(reason) | Verdict::WrongArguments(reason) => {
                (Decision::Deny, Some(reason))
            }
            Verdict::AwaitApproval(reason) => (Decision::Ask, Some(reason)),
        };
        let (guard, evidence) = (guard.name().to_owned(), said.evidence);
        steps.push(Step { guard, about_output: false, decision, reason, evidence });
    }
    let stops = |step: &Step| matches!(step.decision, Decision::Deny);
    let mut left = None;
    if let Some(output) = &call.output
        && !steps.iter().any(stops)
    {
        let (said, output) = review(guards, &input, output).await;
        steps.extend(said);
        left = output;
    }
    let first = |decision| steps.iter().find(|step: &&Step| step.decision == decision);
    let decides = [Decision::Deny, Decision::Ask, Decision::Redact].into_iter().find_map(first);
    Judged {
        decision: decides.map_or(Decision::Allow, |step| step.decision),
        by: decides.map(|step| step.guard.clone()),
        reason: decides.and_then(|step| step.reason.clone()),
        output: left,
        steps,
    }
}

/// Passes output to the guards that review it, as the kernel does.
async fn review(
    guards: &[Arc<dyn Guard>],
    input: &chio_kernel::GuardInput<'_>,
    output: &Value,
) -> (Vec<Step>, Option<Value>) {
    let (mut steps, mut output) = (Vec::new(), output.clone());
    for mode in [ReviewMode::EachChunk, ReviewMode::Whole] {
        for guard in guards.iter().filter(|guard| guard.review_mode() == mode) {
            let mut step = Step {
                guard: guard.name().to_owned(),
                about_output: true,
                decision: Decision::Allow,
                reason: None,
                evidence: None,
            };
            match ask_about_output(&**guard, input, &output).await {
                Review::Pass => {}
                Review::Note(note) => step.evidence = Some(note),
                Review::Replace(less) => {
                    output = less;
                    step.decision = Decision::Redact;
                    step.reason = Some("a part of the output is replaced".to_owned());
                }
                Review::Block(reason) => {
                    step.decision = Decision::Deny;
                    step.reason = Some(reason);
                    steps.push(step);
                    return (steps, None);
                }
            }
            steps.push(step);
        }
    }
    (steps, Some(output))
}
