//! How often chosen tools may be called.

use chio_yaml::{Key, Section};

use super::limits::{Limit, Limits, SHARED_BY, TOOLS};
use super::{Building, Built, GuardKind};

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
    name: "tool-velocity",
    section: "chio.velocity",
    about: "Limits how often chosen tools may be called: `calls` in each `window`, for each agent, \
            session or grant, or for all together. It counts as `velocity` does.",
    keys: KEYS,
    always: false,
    build,
};

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    let mut limits = Limits::new(KIND.name, building.state);
    for item in section.sections("limits", LIMIT) {
        limits.add(&item, Limit::read(&item, "calls", None));
        if !item.has("window") {
            item.problem("window", "expected a time here, such as `1m`");
        }
    }
    section.enabled(true)?;
    if limits.is_empty() {
        return None;
    }
    Some(Built::refusing(KIND.name, None, move |input| limits.refuses(input)))
}
