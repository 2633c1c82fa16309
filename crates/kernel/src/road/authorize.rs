//! Authorize: which grants of the token allow this call, and what each would be debited.

use std::sync::Arc;

use chio_core::capability::{ChioScope, Match, Operation, Patterns, Stage, ToolGrant, WILDCARD};
use chio_core::money::MonetaryAmount;
use chio_core::registry::ErrorCode;

use super::approval::Need;
use super::governed::{self, Stated};
use super::verify::Verified;
use crate::cache::KnownToken;
use crate::call::{Denial, ToolCall};
use crate::kernel::{Inner, Server, ToolFacts};
use crate::store::{Alternative, Hold};

/// Proof that the token's scope allows the call, and on which of its grants.
pub(crate) struct Authorized {
    known: Arc<KnownToken>,
    server: Arc<Server>,
    tool: ToolFacts,
    alternatives: Vec<Alternative>,
    asks_proof: bool,
    need: Option<Need>,
}

impl Authorized {
    /// What a read is: it costs nothing and asks for nothing.
    pub(super) const fn to_read(
        known: Arc<KnownToken>,
        server: Arc<Server>,
        tool: ToolFacts,
        alternatives: Vec<Alternative>,
    ) -> Self {
        Self { known, server, tool, alternatives, asks_proof: false, need: None }
    }

    /// Whether a grant asks for a proof of possession.
    pub(super) const fn asks_proof(&self) -> bool {
        self.asks_proof
    }

    /// The approval that the grant or the tool asks for.
    pub(super) const fn take_need(&mut self) -> Option<Need> {
        self.need.take()
    }

    pub(super) const fn known(&self) -> &Arc<KnownToken> {
        &self.known
    }

    pub(super) const fn server(&self) -> &Arc<Server> {
        &self.server
    }

    pub(super) const fn tool(&self) -> &ToolFacts {
        &self.tool
    }

    /// The ways to pay for the call, best first.
    pub(super) fn alternatives(&self) -> &[Alternative] {
        &self.alternatives
    }
}

/// A grant that allows the call.
struct Candidate<'a> {
    /// Its place in the presented token's scope.
    index: usize,
    /// The grant as it was presented, to tell how exactly it speaks of the tool.
    presented: &'a ToolGrant,
    /// The grant as the route kept it; never wider.
    kept: &'a ToolGrant,
}

impl Inner {
    /// The stage authorize.
    pub(super) fn authorize(
        &self,
        call: &ToolCall,
        verified: &Verified,
        stated: Option<&Stated>,
    ) -> Result<Authorized, Denial> {
        let known = Arc::clone(verified.known());
        let scope = scope_of_call(call, &known)?;
        let mut candidates = candidates(call, scope, &known);
        candidates.sort_by_key(|candidate| {
            let grant = candidate.presented;
            let exact = (grant.server_id != WILDCARD, grant.tool_name != WILDCARD);
            std::cmp::Reverse((exact, candidate.kept.constraints.len()))
        });
        let candidates = satisfied(call, candidates, stated, &self.patterns)?;
        let asks_proof = candidates.iter().any(|it| it.kept.dpop_required == Some(true));
        let (server, tool) = self.find_tool(call)?;
        let (alternatives, asked) = payable(&known, &tool, &candidates, stated)?;
        let asked = if tool.approval_required {
            Some("the tool is published as one that needs approval".to_owned())
        } else {
            asked
        };
        let need = asked.map(Need::by_kernel);
        Ok(Authorized { known, server, tool, alternatives, asks_proof, need })
    }

    /// The tool server of a call.
    pub(super) fn find_server(&self, call: &ToolCall) -> Result<Arc<Server>, Denial> {
        self.server(&call.server_id).ok_or_else(|| {
            let reason = format!("no tool server `{}` is registered", call.server_id);
            Denial::by_kernel(ErrorCode::ToolServerError, reason)
        })
    }

    fn find_tool(&self, call: &ToolCall) -> Result<(Arc<Server>, ToolFacts), Denial> {
        let server = self.find_server(call)?;
        let Some(tool) = server.tool(&call.tool_name) else {
            let (server, tool) = (&call.server_id, &call.tool_name);
            let reason = format!("tool server `{server}` has no tool `{tool}`");
            return Err(Denial::by_kernel(ErrorCode::ToolServerError, reason));
        };
        Ok((server, tool))
    }
}

/// The scope to decide on: the route's, if it is within the token's.
fn scope_of_call<'a>(call: &'a ToolCall, known: &'a KnownToken) -> Result<&'a ChioScope, Denial> {
    let Some(scope) = &call.scope else { return Ok(&known.token.scope) };
    if scope.is_subset_of(&known.token.scope) {
        return Ok(scope);
    }
    let reason = "the attenuated scope is not within the token's";
    Err(Denial::by_kernel(ErrorCode::CapabilityDenied, reason))
}

/// The grants that speak of this tool, each with its place in the presented token.
fn candidates<'a>(
    call: &ToolCall,
    scope: &'a ChioScope,
    known: &'a KnownToken,
) -> Vec<Candidate<'a>> {
    let mut candidates: Vec<Candidate<'a>> = Vec::new();
    let speaks = |grant: &&ToolGrant| {
        grant.covers(&call.server_id, &call.tool_name)
            && grant.operations.contains(&Operation::Invoke)
    };
    for kept in scope.grants.iter().filter(speaks) {
        let mut presented = known.token.scope.grants.iter().enumerate();
        let found = presented.find(|(index, grant)| {
            kept.is_subset_of(grant) && !candidates.iter().any(|taken| taken.index == *index)
        });
        if let Some((index, presented)) = found {
            candidates.push(Candidate { index, presented, kept });
        }
    }
    candidates
}

/// The candidates whose constraints hold; the first reason why none does otherwise.
fn satisfied<'a>(
    call: &ToolCall,
    candidates: Vec<Candidate<'a>>,
    stated: Option<&Stated>,
    patterns: &Patterns,
) -> Result<Vec<Candidate<'a>>, Denial> {
    let (mut satisfied, mut reason) = (Vec::with_capacity(candidates.len()), None);
    for candidate in candidates {
        match constraint_violation(call, candidate.kept, stated, patterns)? {
            None => satisfied.push(candidate),
            violated => reason = reason.or(violated),
        }
    }
    if satisfied.is_empty() {
        let reason = reason.unwrap_or_else(|| {
            let (server, tool) = (&call.server_id, &call.tool_name);
            format!("tool `{tool}` on server `{server}` is not in the token's scope")
        });
        return Err(Denial::by_kernel(ErrorCode::CapabilityDenied, reason));
    }
    Ok(satisfied)
}

/// Why a grant's constraints do not hold. A constraint that is not enforced here does not hold.
fn constraint_violation(
    call: &ToolCall,
    grant: &ToolGrant,
    stated: Option<&Stated>,
    patterns: &Patterns,
) -> Result<Option<String>, Denial> {
    for constraint in &grant.constraints {
        let kind = constraint.kind();
        let matched = constraint.matches(&call.arguments, call.model.as_deref(), patterns);
        match matched.map_err(|e| Denial::by_kernel(ErrorCode::CapabilityDenied, e.to_string()))? {
            Match::Holds => {}
            Match::Fails(reason) => {
                return Ok(Some(format!("constraint `{kind}` does not hold: {reason}")));
            }
            Match::LeftTo(Stage::Governed) => {
                if let Some(reason) = governed::intent_violation(constraint, stated) {
                    return Ok(Some(format!("constraint `{kind}` does not hold: {reason}")));
                }
            }
            Match::LeftTo(Stage::Budget | Stage::Data) => {
                return Ok(Some(format!("constraint `{kind}` cannot be enforced here")));
            }
        }
    }
    Ok(None)
}

/// What each candidate and the grants above it would be debited; the first reason why none can
/// pay otherwise. Where every way asks for an approval, so does the call, for the first reason.
fn payable(
    known: &KnownToken,
    tool: &ToolFacts,
    candidates: &[Candidate<'_>],
    stated: Option<&Stated>,
) -> Result<(Vec<Alternative>, Option<String>), Denial> {
    let mut free = Vec::with_capacity(candidates.len());
    let (mut approved, mut asked, mut refused) = (Vec::new(), None, None);
    for candidate in candidates {
        let alternative = alternative(known, tool, candidate).and_then(|way| {
            governed::beyond_intent(way.price.as_ref(), stated).map_or(Ok(way), Err)
        });
        match alternative {
            Err(reason) => refused = refused.or(Some(reason)),
            Ok(way) => match governed::asks_approval(candidate.kept, way.price.as_ref(), stated) {
                None => free.push(way),
                Some(reason) => {
                    asked = asked.or(Some(reason));
                    approved.push(way);
                }
            },
        }
    }
    match refused {
        Some(reason) if free.is_empty() && approved.is_empty() => {
            Err(Denial::by_kernel(ErrorCode::BudgetExhausted, reason))
        }
        _ if free.is_empty() => Ok((approved, asked)),
        _ => Ok((free, None)),
    }
}

fn alternative(
    known: &KnownToken,
    tool: &ToolFacts,
    candidate: &Candidate<'_>,
) -> Result<Alternative, String> {
    let price = tool.price.ceiling(candidate.kept)?;
    let mut holds = vec![hold(&known.token.id, candidate.index, candidate.kept, price.as_ref())?];
    for above in known.above.get(candidate.index).into_iter().flatten() {
        let Some(ancestor) = known.ancestors.get(above.ancestor) else { continue };
        let Some(grant) = ancestor.scope.grants.get(above.grant) else { continue };
        holds.push(hold(&ancestor.id, above.grant, grant, price.as_ref())?);
    }
    holds.retain(Hold::counts);
    Ok(Alternative { grant_index: index_of(candidate.index), holds, price })
}

/// What one grant is debited for a call of this price.
fn hold(
    capability_id: &str,
    index: usize,
    grant: &ToolGrant,
    price: Option<&MonetaryAmount>,
) -> Result<Hold, String> {
    if let (Some(price), Some(most)) = (price, &grant.max_cost_per_invocation)
        && !price.is_within(most)
    {
        let (units, currency) = (price.units, &price.currency);
        let allowed = format!("{} {}", most.units, most.currency);
        return Err(format!("a call may cost {allowed}, this one costs {units} {currency}"));
    }
    let units = match (price, &grant.max_total_cost) {
        (Some(price), Some(most)) if price.currency != most.currency => {
            let (asked, held) = (&price.currency, &most.currency);
            return Err(format!("the budget is in {held}, the call costs {asked}"));
        }
        (Some(price), Some(_)) => price.units,
        _ => 0,
    };
    Ok(Hold {
        capability_id: capability_id.to_owned(),
        grant_index: index_of(index),
        max_invocations: grant.max_invocations,
        units,
        max_units: grant.max_total_cost.as_ref().map(|most| most.units),
    })
}

fn index_of(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
