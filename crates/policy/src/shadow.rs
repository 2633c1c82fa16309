//! A policy that is only tried: it judges every call, and stops none.

use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{
    Guard, GuardInput, GuardOutcome, Pipeline, Review, ReviewMode, Verdict, ask, ask_about_output,
};
use serde_json::Value;

/// The name under which it stands in receipts.
pub const SHADOW: &str = "shadow";

/// A policy on trial. What it would have done with a call is evidence in the call's receipt.
#[derive(Debug)]
pub struct Shadow {
    pipeline: Pipeline,
}

impl Shadow {
    /// Tries the guards of `trial` beside those in force: first of all, so that it sees the calls
    /// that those deny.
    pub fn beside(in_force: &Pipeline, trial: Pipeline) -> Pipeline {
        in_force.preceded_by(Arc::new(Self { pipeline: trial }))
    }
}

#[async_trait]
impl Guard for Shadow {
    fn name(&self) -> &str {
        SHADOW
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        // What a policy on trial takes is not charged to the call.
        let work = input.work.anew();
        let input = &GuardInput { work: &work, ..*input };
        let mut asks = None;
        let mut outcome = GuardOutcome::from(Verdict::Allow);
        let hash = self.pipeline.policy_hash();
        for guard in self.pipeline.guards() {
            let said = ask(&**guard, input).await;
            match said.verdict {
                Verdict::Allow => {}
                Verdict::Deny(reason) | Verdict::WrongArguments(reason) => {
                    let name = guard.name();
                    outcome.evidence = Some(format!("{hash} would deny: {name}: {reason}"));
                    return Ok(outcome);
                }
                Verdict::AwaitApproval(reason) => {
                    let name = guard.name();
                    asks = asks.or(Some(format!("{hash} would ask: {name}: {reason}")));
                }
            }
        }
        outcome.evidence = asks.or_else(|| Some(format!("{hash} would allow")));
        Ok(outcome)
    }

    /// It holds no stream back: guards that want all of one see each chunk.
    fn review_mode(&self) -> ReviewMode {
        let mut guards = self.pipeline.guards().iter();
        let any = guards.any(|guard| guard.review_mode() != ReviewMode::Nothing);
        if any { ReviewMode::EachChunk } else { ReviewMode::Nothing }
    }

    async fn review(&self, input: &GuardInput<'_>, output: &Value) -> Result<Review, String> {
        let hash = self.pipeline.policy_hash();
        let guards = self.pipeline.guards().iter();
        for guard in guards.filter(|guard| guard.review_mode() != ReviewMode::Nothing) {
            let name = guard.name();
            match ask_about_output(&**guard, input, output).await {
                Review::Pass | Review::Note(_) => {}
                Review::Replace(_) => {
                    return Ok(Review::Note(format!("{hash} would redact output: {name}")));
                }
                Review::Block(reason) => {
                    return Ok(Review::Note(format!("{hash} would deny output: {name}: {reason}")));
                }
            }
        }
        Ok(Review::Pass)
    }
}
