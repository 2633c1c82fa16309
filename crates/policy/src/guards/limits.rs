//! Allowances of calls and of money for chosen tools: what `chio.velocity` and `chio.budgets` share.

use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Verdict};

use super::velocity::refused;
use crate::document::{Key, Section};
use crate::pattern::ToolPatterns;
use crate::state::{Draw, Short, State};

/// The largest number that a document may ask for.
const MAX: u64 = 1 << 40;

pub(super) const PER: &[(&str, Per)] =
    &[("agent", Per::Agent), ("session", Per::Session), ("grant", Per::Grant), ("all", Per::All)];

/// Who shares one allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Per {
    Agent,
    Session,
    Grant,
    All,
}

/// One allowance.
#[derive(Debug)]
pub(super) struct Limit {
    tools: ToolPatterns,
    per: Per,
    /// For money: the currency.
    currency: Option<String>,
    most: u64,
    window: u64,
}

/// A guard over a list of allowances.
pub(super) struct Limits {
    pub(super) name: &'static str,
    pub(super) limits: Vec<Limit>,
    pub(super) state: Arc<State>,
}

/// The keys that both kinds of limits have.
pub(super) const TOOLS: Key =
    Key::new("tools", "a list of tool names, with `*`", "[\"*\"]", "the tools that share it");
pub(super) const SHARED_BY: Key =
    Key::new("per", "`agent`, `session`, `grant` or `all`", "agent", "whose calls count together");

impl Limit {
    /// Reads one of a list.
    pub(super) fn read(item: &Section<'_>, amount: &str) -> Option<Self> {
        let tools = ToolPatterns::read(item, "tools");
        let per = item.one_of("per", PER).unwrap_or(Per::Agent);
        let most = item.number(amount, 1..=MAX);
        if most.is_none() && !item.has(amount) {
            item.problem(amount, "expected a whole number here");
        }
        let window = item.duration("window").map_or(0, |window| window.as_secs());
        Some(Self { tools, per, currency: None, most: most?, window })
    }

    /// Whether both would count on one meter.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let key = |it: &Self| (it.per, it.currency.clone(), it.window, it.tools.clone());
        key(self) == key(other)
    }

    pub(super) fn in_currency(mut self, currency: &str) -> Self {
        self.currency = Some(currency.to_owned());
        self
    }

    /// A name for the allowance that stays when the document is read anew.
    fn draw(&self, guard: &str, input: &GuardInput<'_>) -> Option<Draw> {
        let names = |tools: &ToolPatterns| tools.find(input.server_id, input.tool_name).is_some();
        if !self.tools.is_empty() && !names(&self.tools) {
            return None;
        }
        let takes = match &self.currency {
            None => 1,
            Some(currency) => input.cost.filter(|cost| cost.currency == *currency)?.units,
        };
        let whose = match self.per {
            Per::Agent => input.token.subject.to_string(),
            Per::Session => input.session.id.clone(),
            Per::Grant => format!("{} {}", input.token.id, input.grant_index),
            Per::All => String::new(),
        };
        let currency = self.currency.as_deref().unwrap_or_default();
        let (per, tools, window) = (self.per, &self.tools, self.window);
        let meter = format!("{guard} {per:?} {currency} {window} {tools:?} {whose}");
        Some(Draw { meter, takes, allowance: self.most, window: self.window, burst: 100 })
    }

    fn words(&self) -> String {
        let per = match self.per {
            Per::Agent => "of one agent",
            Per::Session => "of one session",
            Per::Grant => "on one grant",
            Per::All => "of all",
        };
        match &self.currency {
            None => format!("{} calls {per}", self.most),
            Some(currency) => format!("{} minor units of {currency} {per}", self.most),
        }
    }
}

#[async_trait]
impl Guard for Limits {
    fn name(&self) -> &str {
        self.name
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        if input.resumed {
            return Ok(Verdict::Allow.into());
        }
        let found =
            self.limits.iter().filter_map(|limit| Some((limit, limit.draw(self.name, input)?)));
        let (limits, draws): (Vec<&Limit>, Vec<Draw>) = found.unzip();
        if draws.is_empty() {
            return Ok(Verdict::Allow.into());
        }
        let verdict = match self.state.draw(&draws, input.now) {
            Ok(()) => Verdict::Allow,
            Err(Short::Full) => return Err("there is no room to count another caller".to_owned()),
            Err(Short::Used { place, wait }) => {
                let limit = limits.get(place);
                let what = limit.map(|limit| limit.words()).unwrap_or_default();
                refused(&what, limit.map_or(0, |limit| limit.window), wait)
            }
        };
        Ok(verdict.into())
    }
}
