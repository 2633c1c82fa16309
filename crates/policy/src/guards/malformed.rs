//! Calls that do something we know, with arguments that we cannot read.

use chio_yaml::{Key, Section};
use serde_json::json;

use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;
use crate::facts::{Action, Facts};

pub(crate) const KIND: GuardKind = GuardKind {
    name: "malformed-arguments",
    section: "chio.malformed",
    about: "Denies a call that is recognised (it reads files, runs commands, asks a database, …) \
            when its arguments cannot be read, whether or not another guard looks at them; and one \
            with a URL that browsers, RFC 3986 and `curl` take for different places. It is always \
            there.",
    keys: &[Key::ENABLED],
    always: true,
    build,
};

/// Why a destination cannot be judged that has a host for each reader.
pub(super) const AMBIGUOUS: &str = "a destination that readers of URLs take for different places";

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    section.enabled(true)?;
    let forbidden = Some(ExampleCall::new("execute_sql", json!({"query": 7})));
    Some(Built::refusing(KIND.name, forbidden, |input| {
        let facts = Facts::of_call(input)?;
        let why = facts.malformed.as_deref().filter(|_| facts.action != Action::Other);
        let why = why.or_else(|| facts.is_ambiguous.then_some(AMBIGUOUS));
        Ok(why.map(|why| format!("the arguments cannot be read: {why}")))
    }))
}
