//! How often an agent, a grant or a session may call.

use std::sync::Arc;

use chio_kernel::GuardInput;
use chio_yaml::{Key, Section};

use super::limits::{MAX, draw};
use super::{Building, Built, GuardKind};
use crate::state::{Draw, State};

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
    name: "velocity",
    section: "rules.velocity",
    about: "Limits how often a grant, an agent and a session may call in a window of time. Use \
            flows back evenly. Only calls that every other guard allows count. Each running \
            kernel counts for itself, from its start; limits that must hold over restarts and \
            kernels belong in the grant (`max_invocations`, `max_total_cost`).",
    keys: KEYS,
    always: false,
    build,
};

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    section.enabled(true)?;
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
    Some(Built::refusing(KIND.name, None, move |input| guard.refuses(input)))
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
    fn refuses(&self, input: &GuardInput<'_>) -> Result<Option<String>, String> {
        let limits = self.limits.iter();
        let draws =
            limits.filter_map(|(per, most)| Some(((*per, *most), self.draw(*per, *most, input)?)));
        draw(&self.state, input, draws, |(per, most)| match per {
            Per::Session => format!("{most} calls of one session"),
            Per::Agent => format!("{most} calls of one agent"),
            Per::Grant => format!("{most} calls on one grant"),
            Per::Spend => format!("{most} minor units of spend on one grant"),
        })
    }

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
        let ask = |call: &ExampleCall| {
            let memo = chio_kernel::GuardMemo::default();
            guard.refuses(&call.input(&memo, &chio_kernel::Work::default())).unwrap()
        };
        let call = ExampleCall::new("echo", json!({}));
        assert_eq!(ask(&call), None);
        assert!(ask(&call).is_some());
        let resumed = ExampleCall { resumed: true, ..call };
        assert_eq!(ask(&resumed), None);
    }
}
