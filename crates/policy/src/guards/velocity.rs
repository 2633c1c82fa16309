//! How often an agent, a grant or a session may call.

use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Verdict};

use super::{Building, Built, GuardKind};
use crate::document::{Key, Section};
use crate::state::{Draw, Short, State};

const NAME: &str = "velocity";

/// The largest number that a document may ask for.
const MAX: u64 = 1 << 40;

const KEYS: &[Key] = &[
    Key::ENABLED,
    Key::new("max_invocations_per_window", "a whole number", "no limit", "calls on one grant"),
    Key::new(
        "max_spend_per_window",
        "a whole number of minor units",
        "no limit",
        "cost of the calls on one grant, in each currency",
    ),
    Key::new("max_requests_per_agent", "a whole number", "no limit", "calls of one agent"),
    Key::new("max_requests_per_session", "a whole number", "no limit", "calls of one session"),
    Key::new("window_secs", "a whole number of seconds", "60", "the time that the limits are for"),
    Key::new(
        "burst_factor",
        "a number from 1 to 100",
        "1",
        "how much of it may be used at once, as a multiple",
    ),
];

pub(crate) const KIND: GuardKind = GuardKind {
    name: NAME,
    section: "rules.velocity",
    about: "Limits how often a grant, an agent and a session may call in a window of time. Use \
            flows back evenly. Only calls that every other guard allows count. Each running \
            kernel counts for itself, from its start; limits that must hold over restarts and \
            kernels belong in the grant (`max_invocations`, `max_total_cost`).",
    keys: KEYS,
    always: false,
    build,
    samples: SAMPLES,
};

const SAMPLES: &str = r#"
policy:
  hushspec: "0.1.0"
  rules:
    velocity: {max_invocations_per_window: 4, max_requests_per_agent: 3, max_requests_per_session: 2, max_spend_per_window: 100}
cases:
  - {tool: echo, expect: allow}
  - {tool: echo, repeat: 2, expect: allow}
  - {tool: echo, cost: {units: 50, currency: USD}, expect: allow}
  - {tool: echo, repeat: 3, expect: deny, by: velocity, says: session}
  - {tool: echo, repeat: 50, expect: deny, by: velocity}
  - {name: one call that costs more than the window allows, tool: echo, cost: {units: 101, currency: USD}, expect: deny, by: velocity, says: spend}
  - {name: two that do, tool: echo, cost: {units: 51, currency: USD}, repeat: 2, expect: deny, by: velocity, says: spend}
"#;

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    if !section.flag("enabled", true) {
        return None;
    }
    let limit = |key| section.number(key, 1..=MAX);
    let limits = [
        (Per::Session, limit("max_requests_per_session")),
        (Per::Agent, limit("max_requests_per_agent")),
        (Per::Grant, limit("max_invocations_per_window")),
        (Per::Spend, limit("max_spend_per_window")),
    ];
    let limits: Vec<_> = limits.into_iter().filter_map(|(per, most)| Some((per, most?))).collect();
    if limits.is_empty() {
        let named = [
            "max_invocations_per_window",
            "max_spend_per_window",
            "max_requests_per_agent",
            "max_requests_per_session",
        ];
        if !named.into_iter().any(|key| section.has(key)) {
            let expected = "expected at least one limit, such as `max_requests_per_agent: 600`";
            section.problem_at(section.place(), expected);
        }
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 100")]
    let burst =
        section.ratio("burst_factor", 1.0..=100.0).map_or(100, |ratio| (ratio * 100.0) as u64);
    let window = section.number("window_secs", 1..=31_536_000).unwrap_or(60);
    let guard = Velocity { limits, window, burst, state: Arc::clone(building.state) };
    // Whether the state has room left is nothing that can be shown in advance.
    Some(Built { guard: Arc::new(guard), forbidden: None })
}

/// What a limit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Per {
    Session,
    Agent,
    Grant,
    Spend,
}

struct Velocity {
    limits: Vec<(Per, u64)>,
    window: u64,
    burst: u64,
    state: Arc<State>,
}

impl Velocity {
    fn draw(&self, per: Per, allowance: u64, input: &GuardInput<'_>) -> Option<Draw> {
        let (token, grant) = (input.token, input.grant_index);
        let (meter, takes) = match per {
            Per::Session => (format!("velocity session {}", input.session.id), 1),
            Per::Agent => (format!("velocity agent {}", token.subject), 1),
            Per::Grant => (format!("velocity grant {} {grant}", token.id), 1),
            Per::Spend => {
                let cost = input.cost?;
                (format!("velocity spend {} {grant} {}", token.id, cost.currency), cost.units)
            }
        };
        Some(Draw { meter, takes, allowance, window: self.window, burst: self.burst })
    }
}

/// The words for a limit that is reached.
pub(super) fn refused(what: &str, window: u64, wait: Option<u64>) -> Verdict {
    let wait = match wait {
        Some(seconds) => format!("try again in {seconds} s"),
        None => "no waiting helps".to_owned(),
    };
    let window = if window == 0 { String::new() } else { format!(" in {window} s") };
    Verdict::Deny(format!("the limit of {what}{window} is reached; {wait}"))
}

#[async_trait]
impl Guard for Velocity {
    fn name(&self) -> &str {
        NAME
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        if input.resumed {
            // It was counted before it waited.
            return Ok(Verdict::Allow.into());
        }
        let mut kinds = Vec::with_capacity(self.limits.len());
        let mut draws = Vec::with_capacity(self.limits.len());
        for (per, most) in &self.limits {
            if let Some(draw) = self.draw(*per, *most, input) {
                kinds.push((per, most));
                draws.push(draw);
            }
        }
        let verdict = match self.state.draw(&draws, input.now) {
            Ok(()) => Verdict::Allow,
            Err(Short::Full) => return Err("there is no room to count another caller".to_owned()),
            Err(Short::Used { place, wait }) => {
                let what = match kinds.get(place) {
                    Some((Per::Session, most)) => format!("{most} calls of one session"),
                    Some((Per::Agent, most)) => format!("{most} calls of one agent"),
                    Some((Per::Grant, most)) => format!("{most} calls on one grant"),
                    Some((Per::Spend, most)) => format!("{most} minor units of spend on one grant"),
                    None => "calls".to_owned(),
                };
                refused(&what, self.window, wait)
            }
        };
        Ok(verdict.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::example::ExampleCall;

    #[test]
    fn a_call_that_waited_for_its_approval_is_not_counted_twice() {
        let guard = Velocity {
            limits: vec![(Per::Agent, 1)],
            window: 60,
            burst: 100,
            state: Arc::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ask = |call: &ExampleCall| {
            let shared = chio_kernel::Shared::default();
            runtime.block_on(guard.check(&call.input(&shared))).unwrap().verdict
        };
        let call = ExampleCall::new("echo", json!({}));
        assert_eq!(ask(&call), Verdict::Allow);
        assert!(matches!(ask(&call), Verdict::Deny(_)));
        let resumed = ExampleCall { resumed: true, ..call };
        assert_eq!(ask(&resumed), Verdict::Allow);
    }
}
