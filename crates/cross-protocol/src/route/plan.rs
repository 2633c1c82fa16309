//! The planner.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chio_core::canonical::{CanonicalError, Scratch};
use chio_core::governance::{GovernedTransactionIntent, RouteHintsError};
use chio_core::protocol::UnknownProtocol;

use super::evidence::{SelectionSeed, route_id};
use super::{
    ProtocolChain, RouteAvailabilityStatus, RouteCandidate, RouteSelectionDecision,
    RouteSelectionEvidence,
};
use crate::DiscoveryProtocol;
use crate::registry::TargetProtocolRegistry;

/// What became of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoutePlanningOutcome {
    /// What was considered and what was taken, for the receipt.
    pub evidence: RouteSelectionEvidence,
    /// The target taken; none when the plan is a denial.
    pub target: Option<DiscoveryProtocol>,
}

/// Why no plan could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoutePlanningError {
    /// What the intent asks of the planner cannot be read.
    #[error("invalid request envelope: {0}")]
    Hints(#[from] RouteHintsError),
    /// The intent prefers what is no protocol.
    #[error("invalid request envelope: preferred target protocol: {0}")]
    Preferred(#[from] UnknownProtocol),
    /// The plan has no hash.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}

/// What a caller wants of its route.
#[derive(Debug, Clone, Copy)]
struct Wishes {
    requested: DiscoveryProtocol,
    preferred: Option<DiscoveryProtocol>,
    native_fallback: bool,
    native_only: bool,
}

impl Wishes {
    fn of(
        requested: DiscoveryProtocol,
        intent: Option<&GovernedTransactionIntent>,
    ) -> Result<Self, RoutePlanningError> {
        let hints = intent.map(GovernedTransactionIntent::route_hints).transpose()?;
        let hints = hints.unwrap_or_default();
        Ok(Self {
            requested,
            preferred: hints.preferred_target.map(|name| name.parse()).transpose()?,
            native_fallback: hints.allow_native_fallback,
            native_only: hints.disallow_projected,
        })
    }

    /// The targets that are considered, the requested one first.
    fn considered(&self) -> impl Iterator<Item = DiscoveryProtocol> {
        let preferred = self.preferred.filter(|preferred| *preferred != self.requested);
        let native = (self.native_only || self.native_fallback)
            .then_some(DiscoveryProtocol::Native)
            .filter(|native| *native != self.requested && Some(*native) != preferred);
        [Some(self.requested), preferred, native].into_iter().flatten()
    }

    /// The targets that may be taken, the best first.
    fn in_order(&self) -> impl Iterator<Item = DiscoveryProtocol> {
        let native = Some(DiscoveryProtocol::Native);
        let order = if self.native_only {
            [native, None, None]
        } else {
            [self.preferred, Some(self.requested), native.filter(|_| self.native_fallback)]
        };
        order.into_iter().flatten()
    }

    /// Why this target was taken; nothing when it simply was the first choice.
    fn reason(&self, taken: Option<DiscoveryProtocol>) -> Option<&'static str> {
        let Some(target) = taken else {
            return Some(match (self.native_only, self.native_fallback) {
                (true, _) => "projected protocols are disallowed and native is unavailable",
                (false, true) => {
                    "neither the requested target nor the native fallback is available"
                }
                (false, false) => {
                    "the requested target is unavailable and no native fallback is allowed"
                }
            });
        };
        if target == self.requested {
            let passed_over = !self.native_only && self.preferred.is_some_and(|it| it != target);
            return passed_over
                .then_some("the preferred target is unavailable, the requested one is taken");
        }
        Some(if self.native_only {
            "projected protocols are disallowed, native is taken"
        } else if self.preferred == Some(target) {
            "the preferred target is taken instead of the requested one"
        } else {
            "the requested target is unavailable, native is taken"
        })
    }
}

/// Chooses the target of a call.
///
/// The requested target is taken if it is available and nothing else is asked for. The intent's
/// hints may prefer another, allow native where the requested one is unavailable, or disallow
/// everything but native. An unavailable target is never taken.
///
/// ```
/// # use std::collections::BTreeMap;
/// # use chio_core::governance::GovernedTransactionIntent;
/// # use chio_cross_protocol::{
/// #     DiscoveryProtocol, OpenAiTargetExecutor, RouteAvailabilityStatus, RoutePlanningError,
/// #     RouteSelectionDecision, TargetProtocolRegistry, plan_authoritative_route,
/// # };
/// # fn main() -> Result<(), RoutePlanningError> {
/// # let registry = TargetProtocolRegistry::new(DiscoveryProtocol::Native)
/// #     .with_executor(&OpenAiTargetExecutor::default());
/// # let governed_intent: Option<GovernedTransactionIntent> = None;
/// let mut availability = BTreeMap::new();
/// availability.insert(DiscoveryProtocol::Native, RouteAvailabilityStatus::available());
/// availability.insert(DiscoveryProtocol::OpenAi, RouteAvailabilityStatus::available());
///
/// let planning = plan_authoritative_route(
///     "req-01HXYZ",                  // origin request id
///     DiscoveryProtocol::A2a,        // source protocol
///     DiscoveryProtocol::OpenAi,     // requested target
///     governed_intent.as_ref(),      // optional GovernedTransactionIntent
///     &registry,
///     &availability,
/// )?;
///
/// match planning.evidence.decision {
///     RouteSelectionDecision::Select     => { /* ship it */ },
///     RouteSelectionDecision::Attenuate  => { /* fell back to native or alt target */ },
///     RouteSelectionDecision::Deny       => { /* policy said no path is safe */ },
/// }
/// # assert_eq!(planning.target, Some(DiscoveryProtocol::OpenAi));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the intent's hints cannot be read.
// covers: CROSS-008, CROSS-009, CROSS-030
pub fn plan_authoritative_route(
    request_id: &str,
    source: DiscoveryProtocol,
    requested: DiscoveryProtocol,
    governed_intent: Option<&GovernedTransactionIntent>,
    registry: &TargetProtocolRegistry,
    availability: &BTreeMap<DiscoveryProtocol, RouteAvailabilityStatus>,
) -> Result<RoutePlanningOutcome, RoutePlanningError> {
    let wanted = Wanted { request_id, source, requested, governed_intent };
    plan(&wanted, registry, availability, &mut Scratch::default())
}

/// What a route is planned for.
pub(crate) struct Wanted<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) source: DiscoveryProtocol,
    pub(crate) requested: DiscoveryProtocol,
    pub(crate) governed_intent: Option<&'a GovernedTransactionIntent>,
}

/// As [`plan_authoritative_route`], in memory that is used again.
pub(crate) fn plan(
    wanted: &Wanted<'_>,
    registry: &TargetProtocolRegistry,
    availability: &BTreeMap<DiscoveryProtocol, RouteAvailabilityStatus>,
    scratch: &mut Scratch,
) -> Result<RoutePlanningOutcome, RoutePlanningError> {
    let Wanted { request_id, source, requested, governed_intent } = *wanted;
    let wishes = Wishes::of(requested, governed_intent)?;
    let obstacle = |target| obstacle(target, registry, availability);
    let taken = wishes.in_order().find(|target| obstacle(*target).is_none());
    let decision = match taken {
        Some(target) if target == requested => RouteSelectionDecision::Select,
        Some(_) => RouteSelectionDecision::Attenuate,
        None => RouteSelectionDecision::Deny,
    };
    let intent_id = governed_intent.map(|intent| &intent.id);
    let selected_protocols = ProtocolChain::to(source, taken.unwrap_or(requested));
    let route_selection_id = SelectionSeed {
        decision,
        governed_intent_id: intent_id.map(String::as_str),
        request_id,
        requested_target_protocol: requested,
        selected_protocols,
        selected_route_id: taken.map(route_id),
        selected_target_protocol: taken,
        source_protocol: source,
    }
    .id(scratch)?;
    let candidate = |target| candidate(source, target, obstacle(target));
    let evidence = RouteSelectionEvidence {
        candidates: wishes.considered().map(candidate).collect(),
        decision,
        governed_intent_id: intent_id.cloned(),
        reason: wishes.reason(taken).map(Cow::Borrowed),
        requested_target_protocol: requested,
        route_selection_id,
        selected_protocols,
        selected_route_id: taken.map(|target| Cow::Borrowed(route_id(target))),
        selected_target_protocol: taken,
        source_protocol: source,
    };
    Ok(RoutePlanningOutcome { evidence, target: taken })
}

/// Why a target cannot be used, if it cannot.
fn obstacle(
    target: DiscoveryProtocol,
    registry: &TargetProtocolRegistry,
    availability: &BTreeMap<DiscoveryProtocol, RouteAvailabilityStatus>,
) -> Option<Cow<'static, str>> {
    if !registry.supports(target) {
        return Some(Cow::Owned(format!("no executor is registered for {target}")));
    }
    availability.get(&target)?.why_not()
}

const fn candidate(
    source: DiscoveryProtocol,
    target: DiscoveryProtocol,
    obstacle: Option<Cow<'static, str>>,
) -> RouteCandidate {
    RouteCandidate {
        available: obstacle.is_none(),
        availability_reason: obstacle,
        route_id: Cow::Borrowed(route_id(target)),
        selected_protocols: ProtocolChain::to(source, target),
        target_protocol: target,
    }
}
