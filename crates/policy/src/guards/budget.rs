//! How much calls may cost.

use chio_core::money::MonetaryAmount;
use chio_core::money::is_currency;
use chio_kernel::GuardInput;
use chio_yaml::{Key, Section};

use super::limits::{Limit, Limits, MAX, SHARED_BY, TOOLS};
use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;
use crate::pattern::ToolPatterns;

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
    name: "budget",
    section: "chio.budgets",
    about: "Limits what calls may cost, by the price that the tool publishes: each call, and all \
            calls in a window. A call of a priced tool in another currency than its limits have \
            is denied. It counts as `velocity` does; a budget that must hold over restarts and \
            kernels belongs in the grant (`max_total_cost`).",
    keys: KEYS,
    always: false,
    build,
};

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    let mut limits = Limits::new(KIND.name, building.state);
    let mut ceilings = Vec::new();
    for item in section.sections("limits", LIMIT) {
        let currency = item.text("currency").map(|item| item.text).filter(|code| is_currency(code));
        let limit = Limit::read(&item, "units", currency);
        let Some(currency) = currency else {
            item.problem("currency", "expected three capital letters here, such as `USD`");
            continue;
        };
        let most = item.number("per_call", 1..=MAX).or(item.number("units", 1..=MAX));
        ceilings.push(Ceiling {
            tools: ToolPatterns::read(&item, "tools"),
            currency: currency.to_owned(),
            most: most.unwrap_or_default(),
        });
        limits.add(&item, limit);
    }
    section.enabled(true)?;
    if limits.is_empty() {
        return None;
    }
    let forbidden = ceilings.first().map(Ceiling::too_much);
    Some(Built::refusing(KIND.name, forbidden, move |input| match over(&ceilings, input) {
        None => limits.refuses(input),
        refusal => Ok(refusal),
    }))
}

/// The most that one call may cost.
struct Ceiling {
    tools: ToolPatterns,
    currency: String,
    most: u64,
}

impl Ceiling {
    /// A call that costs more than it allows.
    fn too_much(&self) -> ExampleCall {
        let units = self.most.saturating_add(1);
        let cost = Some(MonetaryAmount { units, currency: self.currency.clone() });
        ExampleCall { cost, ..self.tools.example_call("paid") }
    }
}

/// Why this one call costs too much, whatever was spent before.
fn over(ceilings: &[Ceiling], input: &GuardInput<'_>) -> Option<String> {
    let cost = input.cost.filter(|cost| cost.units > 0)?;
    let mut named = ceilings.iter().filter(|it| it.tools.covers(input)).peekable();
    named.peek()?;
    let mut same = named.filter(|it| it.currency == cost.currency).peekable();
    if same.peek().is_none() {
        return Some(format!("the tool is priced in {}, and no budget is", cost.currency));
    }
    let most = same.find(|it| cost.units > it.most)?.most;
    let units = cost.units;
    Some(format!("expected one call to cost at most {most} minor units, found {units}"))
}
