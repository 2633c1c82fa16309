//! Cases tried on a policy: what was expected against what comes of it.

use std::sync::Arc;

use chio_yaml::Problem;

use crate::cases::Case;
use crate::document::Document;
use crate::judge::Judged;
use crate::policy::Policy;
use crate::state::State;

/// What came of a case.
#[derive(Debug, Clone)]
pub struct Trial {
    /// What became of the call, the last time that it was made.
    pub judged: Judged,
    /// What is not as expected, if anything is not.
    pub problem: Option<String>,
}

/// Tries a case on a policy that has judged nothing before.
///
/// # Errors
/// Everything that is wrong with the document.
pub async fn run(case: &Case, document: &Document) -> Result<Trial, Vec<Problem>> {
    let state = Arc::new(State::default());
    let policy = Policy::of_document(document.clone(), &state)?;
    Ok(run_on(case, &policy).await)
}

/// Tries a case on a policy, which retains its state.
pub async fn run_on(case: &Case, policy: &Policy) -> Trial {
    let mut judged = policy.judge(&case.call).await;
    for _ in 1..case.repeat {
        judged = policy.judge(&case.call).await;
    }
    let problem = problem(case, &judged);
    Trial { judged, problem }
}

fn problem(case: &Case, judged: &Judged) -> Option<String> {
    let (by, reason) = (judged.by.as_deref(), judged.reason.as_deref().unwrap_or_default());
    if judged.decision != case.expect {
        let found = judged.decision.word();
        let by = by.map(|by| format!(" by {by}: {reason}")).unwrap_or_default();
        return Some(format!("expected {}, found {found}{by}", case.expect.word()));
    }
    if let Some(expected) = &case.by
        && by != Some(expected)
    {
        let found = by.unwrap_or("no guard");
        return Some(format!("expected it to be {expected}, found {found}: {reason}"));
    }
    let says = case.says.as_ref()?;
    (!reason.contains(says.as_str()))
        .then(|| format!("expected a reason with \"{says}\", found: {reason}"))
}
