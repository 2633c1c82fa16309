//! How much calls may cost.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::money::MonetaryAmount;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Verdict};
use serde_json::json;

use super::limits::{Limit, Limits, SHARED_BY, TOOLS};
use super::{Building, Built, GuardKind};
use crate::document::{Key, Section};
use crate::example::ExampleCall;
use crate::pattern::ToolPatterns;

const NAME: &str = "budget";

const KEYS: &[Key] = &[
    Key::ENABLED,
    Key::new("limits", "a list of maps with `units` and `currency`", "[]", "the limits").of(LIMIT),
];

const LIMIT: &[Key] = &[
    TOOLS,
    SHARED_BY,
    Key::new(
        "units",
        "a whole number of minor units",
        "required",
        "how much, such as 500 for 5.00",
    ),
    Key::new("currency", "three letters", "required", "of which currency, such as `USD`"),
    Key::new("window", "a time such as `1d`", "for ever", "the time that it is for"),
    Key::new("per_call", "a whole number of minor units", "`units`", "the most for one call"),
];

pub(crate) const KIND: GuardKind = GuardKind {
    name: NAME,
    section: "chio.budgets",
    about: "Limits what calls may cost, by the price that the tool publishes: each call, and all \
            calls in a window. A call of a priced tool in another currency than its limits have \
            is denied. It counts as `velocity` does; a budget that must hold over restarts and \
            kernels belongs in the grant (`max_total_cost`).",
    keys: KEYS,
    always: false,
    build,
    samples: SAMPLES,
};

const SAMPLES: &str = r#"
policy:
  hushspec: "0.1.0"
  chio:
    budgets:
      limits:
        - {tools: ["*"], units: 100, currency: USD, window: 1d, per_call: 60}
cases:
  - {tool: paid, cost: {units: 60, currency: USD}, expect: allow}
  - {tool: free, repeat: 9, expect: allow}
  - {tool: paid, cost: {units: 61, currency: USD}, expect: deny, by: budget, says: one call}
  - {tool: paid, cost: {units: 60, currency: USD}, repeat: 2, expect: deny, by: budget, says: 100 minor units}
  - {tool: paid, cost: {units: 1, currency: EUR}, expect: deny, by: budget, says: EUR}
  - {tool: paid, cost: {units: 1, currency: USD}, repeat: 101, expect: deny, by: budget}
"#;

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    let (mut limits, mut ceilings) = (Vec::new(), Vec::new());
    for item in section.sections("limits", LIMIT) {
        let limit = Limit::read(&item, "units");
        let currency = item.text("currency").map(|item| item.text).filter(|code| is_currency(code));
        let Some(currency) = currency else {
            item.problem("currency", "expected three capital letters here, such as `USD`");
            continue;
        };
        let most = item.number("per_call", 1..=(1 << 40)).or(item.number("units", 1..=(1 << 40)));
        ceilings.push(Ceiling {
            tools: ToolPatterns::read(&item, "tools"),
            currency: currency.to_owned(),
            most: most.unwrap_or_default(),
        });
        let limit = limit.map(|limit| limit.in_currency(currency));
        if limit.as_ref().is_some_and(|limit| limits.iter().any(|it: &Limit| it.is_same(limit))) {
            let message = "expected one limit for these tools, whom it is for and its window";
            item.problem_at(item.place(), message);
        }
        limits.extend(limit);
    }
    if !section.flag("enabled", true) || limits.is_empty() {
        return None;
    }
    let forbidden = ceilings.first().map(Ceiling::too_much);
    let limits = Limits { name: NAME, limits, state: Arc::clone(building.state) };
    Some(Built { guard: Arc::new(Budget { ceilings, limits }), forbidden })
}

fn is_currency(code: &str) -> bool {
    code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The most that one call may cost.
struct Ceiling {
    tools: ToolPatterns,
    currency: String,
    most: u64,
}

impl Ceiling {
    fn names(&self, input: &GuardInput<'_>) -> bool {
        self.tools.is_empty() || self.tools.find(input.server_id, input.tool_name).is_some()
    }

    /// A call that costs more than it allows.
    fn too_much(&self) -> ExampleCall {
        let (server, tool) = self.tools.example().unwrap_or((None, "paid".to_owned()));
        let mut call = ExampleCall::new(&tool, json!({}));
        call.server_id = server.unwrap_or(call.server_id);
        let units = self.most.saturating_add(1);
        call.cost = Some(MonetaryAmount { units, currency: self.currency.clone() });
        call
    }
}

struct Budget {
    ceilings: Vec<Ceiling>,
    limits: Limits,
}

impl Budget {
    /// Why this one call costs too much, whatever was spent before.
    fn refusal(&self, input: &GuardInput<'_>) -> Option<String> {
        let cost = input.cost.filter(|cost| cost.units > 0)?;
        let mut named = self.ceilings.iter().filter(|it| it.names(input)).peekable();
        named.peek()?;
        let mut same = named.filter(|it| it.currency == cost.currency).peekable();
        if same.peek().is_none() {
            return Some(format!("the tool is priced in {}, and no budget is", cost.currency));
        }
        let most = same.find(|it| cost.units > it.most)?.most;
        let units = cost.units;
        Some(format!("expected one call to cost at most {most} minor units, found {units}"))
    }
}

#[async_trait]
impl Guard for Budget {
    fn name(&self) -> &str {
        NAME
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        match self.refusal(input) {
            Some(reason) => Ok(Verdict::Deny(reason).into()),
            None => self.limits.check(input).await,
        }
    }
}
