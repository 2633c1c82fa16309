//! Rules in Cedar: read and checked against [`SCHEMA`], cut into slices by what they name, asked
//! about each call.
//!
//! A call asks only the slices that can speak of it: those of its tool, its server and its agent,
//! and the one without a name. The engine skips a rule that fails, which would let a failing
//! `forbid` fail open; here any failure denies.

mod bounds;
mod context;
mod known;
mod needs;
mod origin;
mod read;
mod slice;

use std::collections::BTreeSet;
use std::fmt;

use cedar_policy::{Authorizer, Decision, Entities, PolicyId, PolicySet, Request, Response};
use chio_kernel::{GuardInput, GuardOutcome, Verdict};

pub use origin::Source;
pub(crate) use slice::Scope;

use chio_yaml::Problems;
use known::Known;
use needs::Needs;
use slice::{Slice, Slices};

/// What rules can speak of, as Cedar writes it.
pub const SCHEMA: &str = include_str!("rules/schema.cedarschema");

/// What becomes of a call that no rule speaks of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Otherwise {
    /// It may go on: there is an implicit permit.
    #[default]
    Allow,
    /// It may not: only what a rule permits may.
    Deny,
}

/// What is said of a rule.
#[derive(Debug, Clone)]
struct About {
    /// Its `@id`, or its number and line.
    name: String,
    /// Its `@reason`.
    reason: Option<String>,
    /// Whether it asks for an approval where it would forbid.
    approval: bool,
    /// Whether it is a permit.
    permits: bool,
}

/// Rules that were read.
pub struct Rules {
    otherwise: Otherwise,
    slices: Slices,
    about: Vec<About>,
    known: Known,
    authorizer: Authorizer,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.about.iter().map(|about| &*about.name).collect();
        f.debug_struct("Rules").field("otherwise", &self.otherwise).field("rules", &names).finish()
    }
}

/// What the slices that can speak of a call say together. Rules by their number, so in order.
#[derive(Debug, Default)]
struct Said {
    failed: BTreeSet<usize>,
    forbidden: BTreeSet<usize>,
    asked: BTreeSet<usize>,
    permitted: BTreeSet<usize>,
}

impl Rules {
    /// Reads rules. Whatever is wrong with them is noted; then there are none.
    pub fn read(sources: &[Source<'_>], otherwise: Otherwise, problems: &Problems) -> Option<Self> {
        let read = read::read(sources, otherwise, problems)?;
        let (policies, about): (Vec<_>, Vec<_>) = read.into_iter().unzip();
        let (Ok(slices), Some(known)) = (Slices::of(&policies), Known::new()) else {
            let place = sources.first().map(|source| &source.start)?;
            problems.add(place, "the engine cannot hold these rules");
            return None;
        };
        Some(Self { otherwise, slices, about, known, authorizer: Authorizer::new() })
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.about.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.about.is_empty()
    }

    /// Whether there is a rule that permits.
    #[must_use]
    pub fn permits_anything(&self) -> bool {
        self.about.iter().any(|about| about.permits)
    }

    /// What the head of each rule names.
    pub(crate) fn scopes(&self) -> &[Scope] {
        self.slices.scopes()
    }

    /// What the rules say about a call.
    pub fn ask(&self, input: &GuardInput<'_>) -> GuardOutcome {
        self.try_ask(input).unwrap_or_else(|why| Verdict::Deny(why).into())
    }

    fn try_ask(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let tool = self.known.tool(input.server_id, input.tool_name, &self.slices)?;
        if tool.groups.is_empty() {
            return Ok(self.verdict(&Said::default()).into());
        }
        let agent = input.token.subject.to_string();
        let slices: Vec<&Slice> =
            tool.groups.iter().flat_map(|group| group.about(&agent)).collect();
        if slices.is_empty() {
            return Ok(self.verdict(&Said::default()).into());
        }
        let needs = slices.iter().fold(Needs::default(), |needs, slice| needs.and(slice.needs));
        let rules: usize = slices.iter().map(|slice| slice.len).sum();
        let bytes = context::derived_bytes(input, needs)?;
        let (agent, action) = (self.known.agent(&agent), self.known.action());
        let mut said: Option<Said> = None;
        for turn in context::turns(input, needs)? {
            // Each rule may look through all of the context that is made for it.
            let steps = (bytes / 16 + 16).saturating_mul(rules).saturating_add(bytes);
            input.work.charge_each(steps, 1).map_err(|spent| spent.to_string())?;
            let context = context::of(input, needs, turn)?;
            let (agent, action) = (agent.clone(), action.clone());
            let request = Request::new(agent, action, tool.uid.clone(), context, None);
            let request =
                request.map_err(|_| "the call does not fit the schema of rules".to_owned())?;
            let more = self.said(&slices, &request, &tool.entities);
            said = Some(match said {
                None => more,
                Some(said) => said.and(more),
            });
        }
        let said = said.unwrap_or_default();
        let evidence = self.permitted_by(&said);
        Ok(GuardOutcome { evidence, ..self.verdict(&said).into() })
    }

    fn said(&self, slices: &[&Slice], request: &Request, entities: &Entities) -> Said {
        let mut said = Said::default();
        let ask = |set: &PolicySet| self.authorizer.is_authorized(request, set, entities);
        for slice in slices {
            if let Some(forbids) = &slice.forbids {
                let response = ask(forbids);
                note_failures(&response, &mut said.failed);
                for number in numbers(&response) {
                    let approval = self.about.get(number).is_some_and(|about| about.approval);
                    let list = if approval { &mut said.asked } else { &mut said.forbidden };
                    list.insert(number);
                }
            }
            if let Some(permits) = &slice.permits {
                let response = ask(permits);
                note_failures(&response, &mut said.failed);
                if response.decision() == Decision::Allow {
                    said.permitted.extend(numbers(&response));
                }
            }
        }
        said
    }

    /// Forbidding wins, then failing; then there must be a permit; then an approval may be needed.
    fn verdict(&self, said: &Said) -> Verdict {
        if let Some(about) = self.first(&said.forbidden) {
            let reason = about.reason.as_deref().unwrap_or("it is forbidden");
            return Verdict::Deny(format!("rule `{}`: {reason}", about.name));
        }
        if let Some(about) = self.first(&said.failed) {
            // What the engine says would repeat arguments.
            let name = &about.name;
            return Verdict::Deny(format!("rule `{name}` failed on this call, so it is denied"));
        }
        if self.otherwise == Otherwise::Deny && said.permitted.is_empty() {
            return Verdict::Deny("no rule permits it, and `default` is `deny`".to_owned());
        }
        if let Some(about) = self.first(&said.asked) {
            let reason = about.reason.as_deref().unwrap_or("it needs an approval");
            return Verdict::AwaitApproval(format!("rule `{}`: {reason}", about.name));
        }
        Verdict::Allow
    }

    fn permitted_by(&self, said: &Said) -> Option<String> {
        self.first(&said.permitted).map(|about| format!("rule `{}` permits it", about.name))
    }

    fn first(&self, numbers: &BTreeSet<usize>) -> Option<&About> {
        numbers.first().and_then(|number| self.about.get(*number))
    }
}

impl Said {
    /// What both say: one that forbids, fails or asks is enough, permits have to come from both.
    fn and(mut self, more: Self) -> Self {
        self.forbidden.extend(more.forbidden);
        self.failed.extend(more.failed);
        self.asked.extend(more.asked);
        if more.permitted.is_empty() {
            self.permitted.clear();
        } else if !self.permitted.is_empty() {
            self.permitted.extend(more.permitted);
        }
        self
    }
}

/// The name of a rule towards the engine.
fn id_of(number: usize) -> PolicyId {
    PolicyId::new(number.to_string())
}

fn number_of(id: &PolicyId) -> usize {
    let text: &str = id.as_ref();
    text.parse().unwrap_or(usize::MAX)
}

/// The rules that decided.
fn numbers(response: &Response) -> impl Iterator<Item = usize> {
    response.diagnostics().reason().map(number_of)
}

fn note_failures(response: &Response, failed: &mut BTreeSet<usize>) {
    for error in response.diagnostics().errors() {
        let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
        failed.insert(number_of(error.policy_id()));
    }
}

#[cfg(test)]
mod tests;
