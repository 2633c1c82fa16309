//! Calls that do something we know, with arguments that we cannot read.

use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Verdict};
use serde_json::json;

use super::{Building, Built, GuardKind};
use crate::document::{Key, Section};
use crate::example::ExampleCall;
use crate::facts::{Action, Facts};

const NAME: &str = "malformed-arguments";

pub(crate) const KIND: GuardKind = GuardKind {
    name: NAME,
    section: "chio.malformed",
    about: "Denies a call that is recognised (it reads files, runs commands, asks a database, …) \
            when its arguments cannot be read, whether or not another guard looks at them. It is \
            always there.",
    keys: &[Key::ENABLED],
    always: true,
    build,
    samples: SAMPLES,
};

const SAMPLES: &str = r#"
policy:
  hushspec: "0.1.0"
cases:
  - {tool: read_file, args: {path: /workspace/a}, expect: allow}
  - {tool: execute_sql, args: {query: select 1}, expect: allow}
  - {tool: render, args: {anything: 7}, expect: allow}
  - {tool: read_file, args: {path: 7}, expect: deny, by: malformed-arguments}
  - {tool: execute_sql, args: {query: 7}, expect: deny, by: malformed-arguments}
  - {tool: execute_sql, expect: deny, by: malformed-arguments}
  - {tool: bash, args: {command: {}}, expect: deny, by: malformed-arguments}
"#;

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    if !section.flag("enabled", true) {
        return None;
    }
    let forbidden = Some(ExampleCall::new("execute_sql", json!({"query": 7})));
    Some(Built { guard: Arc::new(Malformed), forbidden })
}

struct Malformed;

#[async_trait]
impl Guard for Malformed {
    fn name(&self) -> &str {
        NAME
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let facts = Facts::of_call(input)?;
        let why = facts.malformed.as_ref().filter(|_| facts.action != Action::Other);
        let deny = |why: &String| Verdict::Deny(format!("the arguments cannot be read: {why}"));
        Ok(why.map_or(Verdict::Allow, deny).into())
    }
}
