//! Allowances of calls and of money, which `rules.velocity`, `chio.velocity` and `chio.budgets` share.

use std::sync::Arc;

use chio_kernel::GuardInput;
use chio_yaml::{Key, Section};

use crate::pattern::ToolPatterns;
use crate::state::{Draw, Short, State};

/// The largest number that a document may ask for.
pub(super) const MAX: u64 = 1 << 40;

/// Whose calls count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Per {
    Agent,
    Session,
    Grant,
    All,
}

const PER: &[(&str, Per)] =
    &[("agent", Per::Agent), ("session", Per::Session), ("grant", Per::Grant), ("all", Per::All)];

/// One allowance.
#[derive(Debug)]
pub(super) struct Limit {
    tools: ToolPatterns,
    per: Per,
    /// For money: the currency.
    currency: Option<String>,
    most: u64,
    /// In seconds; 0 when nothing ever flows back.
    window: u64,
}

/// The allowances of one guard.
pub(super) struct Limits {
    guard: &'static str,
    limits: Vec<Limit>,
    state: Arc<State>,
}

/// The keys that both kinds of limits have.
pub(super) const TOOLS: Key = ToolPatterns::key("tools", "[\"*\"]", "the tools that share it");
pub(super) const SHARED_BY: Key =
    Key::new("per", "`agent`, `session`, `grant` or `all`", "agent", "whose calls count together");

impl Limits {
    pub(super) fn new(guard: &'static str, state: &Arc<State>) -> Self {
        Self { guard, limits: Vec::new(), state: Arc::clone(state) }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// Adds a limit that was read. Two that count on one meter are a problem.
    pub(super) fn add(&mut self, item: &Section<'_>, limit: Option<Limit>) {
        let Some(limit) = limit else { return };
        if self.limits.iter().any(|it| it.is_same(&limit)) {
            let message = "expected one limit for these tools, whom it is for and its window";
            item.problem_at(item.place(), message);
        }
        self.limits.push(limit);
    }

    /// Why a call may not draw on its allowances.
    pub(super) fn refuses(&self, input: &GuardInput<'_>) -> Result<Option<String>, String> {
        let draws = self.limits.iter();
        let draws = draws.filter_map(|limit| Some((limit, limit.draw(self.guard, input)?)));
        draw(&self.state, input, draws, |limit| limit.words())
    }
}

impl Limit {
    /// Reads one limit of a list.
    pub(super) fn read(item: &Section<'_>, amount: &str, currency: Option<&str>) -> Option<Self> {
        let tools = ToolPatterns::read(item, "tools");
        let per = item.one_of("per", PER).unwrap_or(Per::Agent);
        let most =
            item.required(amount, item.number(amount, 1..=MAX), "expected a whole number here");
        let window = item.duration("window").map_or(0, |window| window.as_secs());
        Some(Self { tools, per, currency: currency.map(str::to_owned), most: most?, window })
    }

    /// Whether both count on one meter.
    fn is_same(&self, other: &Self) -> bool {
        self.per == other.per
            && self.currency == other.currency
            && self.window == other.window
            && self.tools == other.tools
    }

    /// What a call takes. The meter's name stays the same when the document is read anew.
    fn draw(&self, guard: &str, input: &GuardInput<'_>) -> Option<Draw> {
        if !self.tools.covers(input) {
            return None;
        }
        let takes = match &self.currency {
            None => 1,
            Some(currency) => input.cost.filter(|cost| cost.currency == *currency)?.units,
        };
        let owner = match self.per {
            Per::Agent => input.token.subject.to_string(),
            Per::Session => input.session.id.clone(),
            Per::Grant => format!("{} {}", input.token.id, input.grant_index),
            Per::All => String::new(),
        };
        let currency = self.currency.as_deref().unwrap_or_default();
        let Self { per, tools, window, .. } = self;
        let meter = format!("{guard} {per:?} {currency} {window} {tools:?} {owner}");
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

/// Draws on all allowances or on none. The reason for a refusal has the words for the limit that is
/// reached.
pub(super) fn draw<L>(
    state: &State,
    input: &GuardInput<'_>,
    draws: impl Iterator<Item = (L, Draw)>,
    words: impl Fn(L) -> String,
) -> Result<Option<String>, String> {
    let (limits, draws): (Vec<L>, Vec<Draw>) = draws.unzip();
    // A call that resumes was counted before it waited.
    if input.resumed || draws.is_empty() {
        return Ok(None);
    }
    let (place, wait) = match state.draw(&draws, input.now) {
        Ok(()) => return Ok(None),
        Err(Short::Full) => return Err("there is no room to count another caller".to_owned()),
        Err(Short::Used { place, wait }) => (place, wait),
    };
    let limit = limits.into_iter().nth(place).map(words).unwrap_or_default();
    let window = draws.get(place).map(|draw| draw.window).filter(|window| *window > 0);
    let window = window.map(|window| format!(" in {window} s")).unwrap_or_default();
    let wait = match wait {
        Some(seconds) => format!("try again in {seconds} s"),
        None => "no waiting helps".to_owned(),
    };
    Ok(Some(format!("the limit of {limit}{window} is reached; {wait}")))
}
