//! Which protocol a call is answered in: the requested one, another one, or none.
//!
//! The plan is made from what the caller asks, what is registered and what is available; it is
//! signed into the receipt, the candidates that were passed over with it.

mod availability;
mod chain;
mod evidence;
mod plan;

pub use availability::RouteAvailabilityStatus;
pub use chain::ProtocolChain;
pub use evidence::{
    RouteCandidate, RouteSelectionDecision, RouteSelectionEvidence, route_selection_metadata,
};
pub use plan::{RoutePlanningError, RoutePlanningOutcome, plan_authoritative_route};
pub(crate) use plan::{Wanted, plan};

#[cfg(test)]
mod tests;
