//! Calls that wait for an approval, by rules of our own.

use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Verdict};
use serde_json::json;

use super::{Building, Built, GuardKind};
use crate::document::{Key, Section};
use crate::example::ExampleCall;
use crate::pattern::ToolPatterns;

const NAME: &str = "approval";

const KEYS: &[Key] = &[
    Key::ENABLED,
    Key::new("rules", "a list of maps", "[]", "which calls wait, and why"),
];

const RULE: &[Key] = &[
    Key::new("tools", "a list of tool names, with `*`", "[\"*\"]", "the tools"),
    Key::new(
        "side_effects",
        "true or false",
        "false",
        "only tools that are published as having side effects, or not published at all",
    ),
    Key::new("except", "a list of tool names, with `*`", "[]", "tools that need none after all"),
    Key::new("reason", "text", "the rule's place", "what the approver is told"),
];

pub(crate) const KIND: GuardKind = GuardKind {
    name: NAME,
    section: "chio.approvals",
    about: "Parks calls in the inbox until somebody approves them: tools by name, or all that have \
            side effects. Tools published with `x-chio-approval-required` always wait.",
    keys: KEYS,
    always: false,
    build,
    samples: SAMPLES,
};

const SAMPLES: &str = r#"
policy:
  hushspec: "0.1.0"
  chio:
    approvals:
      rules:
        - {tools: ["*delete*"], reason: it deletes}
        - {side_effects: true, except: [note_*]}
cases:
  - {tool: read, schema: {type: object}, expect: allow}
  - {tool: note_put, expect: allow}
  - {tool: delete_all, schema: {type: object}, expect: ask, by: approval, says: it deletes}
  - {tool: note_delete, expect: ask, by: approval}
  - {name: a tool that nobody has published may do anything, tool: unknown, expect: ask, by: approval}
  - {tool: undelete, schema: {type: object}, expect: ask, by: approval}
"#;

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    let mut rules = Vec::new();
    for (number, item) in section.sections("rules", RULE).iter().enumerate() {
        let rule = Rule {
            tools: ToolPatterns::read(item, "tools"),
            side_effects: item.flag("side_effects", false),
            except: ToolPatterns::read(item, "except"),
            reason: item.text("reason").map_or_else(
                || format!("rule {} of `chio.approvals` names it", number + 1),
                |item| item.text.to_owned(),
            ),
        };
        if rule.tools.is_empty() && !rule.side_effects {
            item.problem("tools", "expected `tools` or `side_effects: true` in each rule");
        }
        rules.push(rule);
    }
    if !section.flag("enabled", true) || rules.is_empty() {
        return None;
    }
    let forbidden = rules.iter().find_map(Rule::example);
    Some(Built { guard: Arc::new(Approvals { rules }), forbidden })
}

struct Rule {
    tools: ToolPatterns,
    side_effects: bool,
    except: ToolPatterns,
    reason: String,
}

impl Rule {
    fn asks(&self, input: &GuardInput<'_>) -> bool {
        let names = |tools: &ToolPatterns| tools.find(input.server_id, input.tool_name).is_some();
        let harmless = input.tool.is_some_and(|tool| !tool.has_side_effects);
        (self.tools.is_empty() || names(&self.tools))
            && !(self.side_effects && harmless)
            && !names(&self.except)
    }

    /// A call that the rule asks about, where one is easily told.
    fn example(&self) -> Option<ExampleCall> {
        let (server, tool) = self.tools.example().unwrap_or((None, "chio.example".to_owned()));
        let mut call = ExampleCall::new(&tool, json!({}));
        call.server_id = server.unwrap_or(call.server_id);
        let asked = self.except.find(&call.server_id, &call.tool_name).is_none();
        asked.then_some(call)
    }
}

struct Approvals {
    rules: Vec<Rule>,
}

#[async_trait]
impl Guard for Approvals {
    fn name(&self) -> &str {
        NAME
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let rule = self.rules.iter().find(|rule| rule.asks(input));
        let verdict =
            rule.map_or(Verdict::Allow, |rule| Verdict::AwaitApproval(rule.reason.clone()));
        Ok(verdict.into())
    }
}
