//! How often chosen tools may be called.

use std::sync::Arc;

use super::limits::{Limit, Limits, SHARED_BY, TOOLS};
use super::{Building, Built, GuardKind};
use crate::document::{Key, Section};

const NAME: &str = "tool-velocity";

const KEYS: &[Key] = &[
    Key::ENABLED,
    Key::new("limits", "a list of maps with `calls` and `window`", "[]", "the limits").of(LIMIT),
];

const LIMIT: &[Key] = &[
    TOOLS,
    SHARED_BY,
    Key::new("calls", "a whole number", "required", "how many calls"),
    Key::new("window", "a time such as `1m`", "required", "the time that they are for"),
];

pub(crate) const KIND: GuardKind = GuardKind {
    name: NAME,
    section: "chio.velocity",
    about: "Limits how often chosen tools may be called: `calls` in each `window`, for each agent, \
            session or grant, or for all together. It counts as `velocity` does.",
    keys: KEYS,
    always: false,
    build,
    samples: SAMPLES,
};

const SAMPLES: &str = r#"
policy:
  hushspec: "0.1.0"
  chio:
    velocity:
      limits:
        - {tools: [send_*], calls: 2, window: 1h}
        - {tools: [deploy], per: all, calls: 1, window: 1d}
cases:
  - {tool: send_mail, repeat: 2, expect: allow}
  - {tool: read_mail, repeat: 20, expect: allow}
  - {tool: deploy, expect: allow}
  - {tool: send_mail, repeat: 3, expect: deny, by: tool-velocity, says: 2 calls of one agent}
  - {tool: send_sms, repeat: 3, expect: deny, by: tool-velocity}
  - {tool: deploy, repeat: 2, expect: deny, by: tool-velocity, says: 1 calls of all}
  - {tool: deploy, agent: another, repeat: 2, expect: deny, by: tool-velocity}
"#;

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    let mut limits = Vec::new();
    for item in section.sections("limits", LIMIT) {
        let limit = Limit::read(&item, "calls");
        if !item.has("window") {
            item.problem("window", "expected a time here, such as `1m`");
        }
        if limit.as_ref().is_some_and(|limit| limits.iter().any(|it: &Limit| it.is_same(limit))) {
            let message = "expected one limit for these tools, whom it is for and its window";
            item.problem_at(item.place(), message);
        }
        limits.extend(limit);
    }
    if !section.flag("enabled", true) || limits.is_empty() {
        return None;
    }
    let guard = Limits { name: NAME, limits, state: Arc::clone(building.state) };
    Some(Built { guard: Arc::new(guard), forbidden: None })
}
