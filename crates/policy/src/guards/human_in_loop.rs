//! Calls that wait until somebody approves them, as HushSpec has it.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::money::MonetaryAmount;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Verdict};
use serde_json::json;

use super::{Building, Built, GuardKind};
use crate::document::{Key, Section};
use crate::example::ExampleCall;
use crate::pattern::ToolPatterns;

const NAME: &str = "human-in-loop";

/// The section, which also says how long calls wait.
pub(crate) const SECTION: &str = "rules.human_in_loop";

pub(crate) const KEYS: &[Key] = &[
    Key::ENABLED,
    Key::new(
        "require_confirmation",
        "a list of tool names, with `*`",
        "[]",
        "tools whose calls wait for an approval",
    ),
    Key::new(
        "approve_above",
        "a whole number of minor units",
        "no threshold",
        "calls that cost more wait for an approval",
    ),
    Key::new("approve_above_currency", "three letters", "any", "the currency of `approve_above`"),
    Key::new("timeout_seconds", "a time such as `5m`", "the kernel's", "how long a call waits"),
    Key::new("on_timeout", "`deny`", "deny", "what becomes of a call that nobody answers"),
];

pub(crate) const KIND: GuardKind = GuardKind {
    name: NAME,
    section: SECTION,
    about: "Parks calls of chosen tools, and calls that cost more than a threshold, in the inbox \
            until somebody approves them with `chio approvals approve`.",
    keys: KEYS,
    always: false,
    build,
    samples: SAMPLES,
};

const SAMPLES: &str = r#"
policy:
  hushspec: "0.1.0"
  rules:
    human_in_loop: {require_confirmation: ["deploy*"], approve_above: 500, approve_above_currency: USD, timeout_seconds: 300}
cases:
  - {tool: read_file, args: {path: a.txt}, expect: allow}
  - {tool: buy, cost: {units: 500, currency: USD}, expect: allow}
  - {tool: deploy, expect: ask, by: human-in-loop, says: "`deploy*`"}
  - {tool: deploy_prod, expect: ask, by: human-in-loop}
  - {tool: buy, cost: {units: 501, currency: USD}, expect: ask, by: human-in-loop, says: "500"}
  - {name: a price in another currency cannot be compared, tool: buy, cost: {units: 1, currency: EUR}, expect: ask, by: human-in-loop}
"#;

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    let tools = ToolPatterns::read(section, "require_confirmation");
    let above = section.number("approve_above", 0..=(1 << 40));
    let currency = section.text("approve_above_currency").map(|item| item.text.to_owned());
    let words = [("deny", true), ("defer", false)];
    if section.one_of("on_timeout", &words) == Some(false) {
        section.problem("on_timeout", "this kernel denies what nobody answers; write `deny`");
    }
    if currency.is_some() && above.is_none() {
        section.problem("approve_above_currency", "expected `approve_above` beside it");
    }
    if !section.flag("enabled", true) || (tools.is_empty() && above.is_none()) {
        return None;
    }
    let forbidden = match tools.example() {
        Some((server, tool)) => {
            let mut call = ExampleCall::new(&tool, json!({}));
            call.server_id = server.unwrap_or(call.server_id);
            call
        }
        None => {
            let mut call = ExampleCall::new("paid", json!({}));
            let currency = currency.clone().unwrap_or_else(|| "USD".to_owned());
            let units = above.unwrap_or_default().saturating_add(1);
            call.cost = Some(MonetaryAmount { units, currency });
            call
        }
    };
    let guard = HumanInLoop { tools, above: above.map(|units| (units, currency)) };
    Some(Built { guard: Arc::new(guard), forbidden: Some(forbidden) })
}

struct HumanInLoop {
    tools: ToolPatterns,
    above: Option<(u64, Option<String>)>,
}

impl HumanInLoop {
    fn reason(&self, input: &GuardInput<'_>) -> Option<String> {
        if let Some(pattern) = self.tools.find(input.server_id, input.tool_name) {
            return Some(format!("`{pattern}` of `require_confirmation` names it"));
        }
        let ((most, currency), cost) = (self.above.as_ref()?, input.cost?);
        match currency {
            Some(currency) if *currency != cost.currency => {
                Some(format!("it costs {}, not {currency}", cost.currency))
            }
            _ if cost.units > *most => Some(format!("it costs more than {most} minor units")),
            _ => None,
        }
    }
}

#[async_trait]
impl Guard for HumanInLoop {
    fn name(&self) -> &str {
        NAME
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        Ok(self.reason(input).map_or(Verdict::Allow, Verdict::AwaitApproval).into())
    }
}
