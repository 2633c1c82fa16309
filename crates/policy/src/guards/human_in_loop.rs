//! Calls that wait for an approval, as HushSpec defines it.

use chio_core::money::MonetaryAmount;
use chio_kernel::{GuardInput, Verdict};
use chio_yaml::{Key, Section};

use super::{Building, Built, GuardKind};
use crate::pattern::ToolPatterns;

const KEYS: &[Key] = &[
    Key::ENABLED,
    ToolPatterns::key("require_confirmation", "[]", "tools whose calls wait for an approval"),
    Key::new(
        "approve_above",
        "a whole number of minor units",
        "no threshold",
        "calls that cost more wait for an approval",
    ),
    Key::new("approve_above_currency", "three letters", "any", "the currency of `approve_above`"),
    Key::new("timeout_seconds", "a time such as `5m`", "the kernel's", "how long a call waits"),
    Key::new("on_timeout", "`deny`", "deny", "what becomes of a call that gets no answer"),
];

pub(crate) const KIND: GuardKind = GuardKind {
    name: "human-in-loop",
    section: "rules.human_in_loop",
    about: "Parks calls of chosen tools, and calls that cost more than a threshold, in the inbox \
            until an approver approves them with `chio approvals approve`.",
    keys: KEYS,
    always: false,
    build,
};

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    let tools = ToolPatterns::read(section, "require_confirmation");
    let above = section.number("approve_above", 0..=(1 << 40));
    let currency = section.text("approve_above_currency").map(|item| item.text.to_owned());
    let words = [("deny", true), ("defer", false)];
    if section.one_of("on_timeout", &words) == Some(false) {
        section
            .problem("on_timeout", "this kernel denies a call that gets no answer; write `deny`");
    }
    if currency.is_some() && above.is_none() {
        section.problem("approve_above_currency", "expected `approve_above` beside it");
    }
    section.enabled(true)?;
    if tools.is_empty() && above.is_none() {
        return None;
    }
    let mut forbidden = tools.example_call("paid");
    if tools.is_empty() {
        let currency = currency.clone().unwrap_or_else(|| "USD".to_owned());
        let units = above.unwrap_or_default().saturating_add(1);
        forbidden.cost = Some(MonetaryAmount { units, currency });
    }
    let guard = HumanInLoop { tools, above: above.map(|units| (units, currency)) };
    Some(Built::deciding(KIND.name, Some(forbidden), move |input| {
        Ok(guard.reason(input).map_or(Verdict::Allow, Verdict::AwaitApproval))
    }))
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
