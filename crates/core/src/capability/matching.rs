//! Whether a constraint holds for a call's arguments: pure functions, one rule per constraint.

mod host;
mod leaves;
mod path;
mod patterns;

use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

pub use self::patterns::Patterns;

use self::leaves::{Leaf, members, string_leaves};
use super::constraint::{Constraint, ModelRequirement};
use crate::governance::ModelMetadata;

/// Members that name the receivers of a message, lowercase.
const AUDIENCE_MEMBERS: [&str; 6] =
    ["recipient", "recipients", "audience", "to", "channel", "channels"];
/// Members that name a memory store, lowercase.
const STORE_MEMBERS: [&str; 4] = ["store", "memory_store", "collection", "namespace"];

/// The result of a constraint for one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// It holds.
    Holds,
    /// The arguments do not decide it; a later stage does.
    LeftTo(Stage),
    /// It does not hold, for this reason.
    Fails(String),
}

/// The stage that enforces a constraint which the arguments do not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The checks on governed intents and approvals.
    Governed,
    /// The reservation of budgets.
    Budget,
    /// A guard that understands the tool's data.
    Data,
}

/// A constraint that cannot be evaluated at all. The call is denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("constraint `{kind}` cannot be evaluated: {problem}")]
pub struct ConstraintError {
    kind: &'static str,
    problem: String,
}

impl Constraint {
    /// Whether the constraint holds for a call with these arguments, made by this model. Patterns
    /// are compiled once for all calls that share `patterns`.
    ///
    /// # Errors
    /// When the constraint itself is broken, such as a pattern that does not compile.
    pub fn matches(
        &self,
        arguments: &Value,
        model: Option<&ModelMetadata>,
        patterns: &Patterns,
    ) -> Result<Match, ConstraintError> {
        Ok(match self {
            Self::PathPrefix(prefix) => path_prefix(prefix, arguments),
            Self::DomainExact(domain) => {
                let domain = host::normal(domain);
                hosts(arguments, |host| host == domain)
            }
            Self::DomainGlob(pattern) => {
                let pattern = host::normal(pattern);
                hosts(arguments, |host| host::glob(&pattern, host))
            }
            Self::RegexMatch(pattern) => {
                let pattern = self.compile(pattern, patterns)?;
                any_leaf(arguments, |text| pattern.is_match(text), "matches the pattern")
            }
            Self::MaxLength(most) => {
                no_leaf(arguments, |text| exceeds(text.len(), *most), "is longer than allowed")
            }
            Self::MaxArgsSize(most) => max_args_size(*most, arguments),
            Self::Custom(name, expected) => custom(name, expected, arguments),
            Self::AudienceAllowlist(allowed) => allowlist(arguments, &AUDIENCE_MEMBERS, allowed),
            Self::MemoryStoreAllowlist(allowed) => allowlist(arguments, &STORE_MEMBERS, allowed),
            Self::MemoryWriteDenyPatterns(denied) => {
                let denied: Vec<_> =
                    denied.iter().map(|p| self.compile(p, patterns)).collect::<Result<_, _>>()?;
                let denied = |text: &str| denied.iter().any(|pattern| pattern.is_match(text));
                no_leaf(arguments, denied, "matches a denied pattern")
            }
            Self::ModelConstraint(requirement) => model_constraint(requirement, model),
            Self::GovernedIntentRequired
            | Self::RequireApprovalAbove(_)
            | Self::SellerExact(_)
            | Self::MinimumRuntimeAssurance(_)
            | Self::MinimumAutonomyTier(_) => Match::LeftTo(Stage::Governed),
            Self::TableAllowlist(_)
            | Self::ColumnDenylist(_)
            | Self::MaxRowsReturned(_)
            | Self::OperationClass(_) => Match::LeftTo(Stage::Data),
            Self::RequireCumulativeApprovalAbove(_) => Match::LeftTo(Stage::Budget),
            Self::ContentReviewTier(_)
            | Self::MaxTransactionAmountUsd(_)
            | Self::RequireDualApproval(_) => {
                Match::Fails(format!("constraint `{}` is unsupported", self.kind()))
            }
        })
    }

    fn compile(&self, pattern: &str, known: &Patterns) -> Result<Arc<Regex>, ConstraintError> {
        known.get(pattern).ok_or_else(|| {
            let problem = "expected a regular expression of reasonable size".to_owned();
            ConstraintError { kind: self.kind(), problem }
        })
    }
}

fn fails(reason: impl Into<String>) -> Match {
    Match::Fails(reason.into())
}

fn holds_if(condition: bool, reason: &str) -> Match {
    if condition { Match::Holds } else { fails(reason) }
}

fn exceeds(len: usize, most: u64) -> bool {
    u64::try_from(len).is_ok_and(|len| len > most)
}

fn any_leaf(arguments: &Value, test: impl Fn(&str) -> bool, what: &str) -> Match {
    let any = string_leaves(arguments).iter().any(|leaf| test(leaf.text));
    holds_if(any, &format!("no string in the arguments {what}"))
}

fn no_leaf(arguments: &Value, test: impl Fn(&str) -> bool, what: &str) -> Match {
    let any = string_leaves(arguments).iter().any(|leaf| test(leaf.text));
    holds_if(!any, &format!("a string in the arguments {what}"))
}

fn path_prefix(prefix: &str, arguments: &Value) -> Match {
    let leaves = string_leaves(arguments);
    let mut paths = leaves.iter().filter(|leaf| path::is_path(leaf)).peekable();
    if paths.peek().is_none() {
        return fails(format!("expected a path under `{prefix}`, found none in the arguments"));
    }
    let all = paths.all(|leaf| path::is_under(leaf.text, prefix));
    holds_if(all, &format!("expected every path under `{prefix}`, found one outside"))
}

fn hosts(arguments: &Value, allowed: impl Fn(&str) -> bool) -> Match {
    let mut found = false;
    for Leaf { text, .. } in string_leaves(arguments) {
        match host::extract(text) {
            host::Found::Host(host) if allowed(&host) => found = true,
            host::Found::Host(_) => return fails("a host in the arguments is not allowed"),
            // SECURITY: a URL whose host cannot be read could go anywhere.
            host::Found::Unreadable => {
                return fails("a URL in the arguments has no readable host");
            }
            host::Found::Nothing => {}
        }
    }
    holds_if(found, "expected a host in the arguments, found none")
}

fn max_args_size(most: u64, arguments: &Value) -> Match {
    // The measure is the compact text, not the canonical one.
    match serde_json::to_vec(arguments) {
        Ok(text) if !exceeds(text.len(), most) => Match::Holds,
        Ok(text) => {
            fails(format!("expected at most {most} bytes of arguments, found {}", text.len()))
        }
        Err(_) => fails("the arguments cannot be measured"),
    }
}

fn custom(name: &str, expected: &str, arguments: &Value) -> Match {
    let is_expected = |value: &Value| value.as_str() == Some(expected);
    let any =
        members(arguments).iter().any(|(member, value)| *member == name && is_expected(value));
    holds_if(any, &format!("expected a member `{name}` with the granted value"))
}

/// Members of the given names hold strings of the allowlist only; without such members it holds.
fn allowlist(arguments: &Value, names: &[&str], allowed: &[String]) -> Match {
    let mut targets = Vec::new();
    for (name, value) in members(arguments) {
        if !names.contains(&name.to_lowercase().as_str()) {
            continue;
        }
        let before = targets.len();
        if !leaves::only_strings(value, &mut targets) || targets.len() == before {
            return fails(format!("expected only strings in `{name}`, and at least one"));
        }
    }
    let all = targets.iter().all(|target| allowed.iter().any(|name| name == target));
    holds_if(all, "a target in the arguments is not on the allowlist")
}

fn model_constraint(requirement: &ModelRequirement, model: Option<&ModelMetadata>) -> Match {
    let Some(model) = model else { return fails("expected model metadata, found none") };
    let ids = &requirement.allowed_model_ids;
    if !ids.is_empty() && !ids.contains(&model.model_id) {
        return fails("the model is not one of those allowed");
    }
    let Some(floor) = requirement.min_safety_tier else { return Match::Holds };
    let enough = model.safety_tier.is_some_and(|tier| tier >= floor);
    holds_if(enough, "the model's safety tier is below the required one, or unknown")
}

#[cfg(test)]
mod tests;
