//! One request on its way to the kernel: resolved, narrowed, planned and traced.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use chio_core::canonical::{self, CanonicalError, Scratch, Written};
use chio_core::capability::ChioScope;
use chio_core::fidelity::BridgeFidelity;
use chio_core::hash::sha256_hex;
use chio_core::registry::ErrorCode;
use chio_kernel::{Denial, ToolCall};
use serde_json::Value;

use crate::DiscoveryProtocol;
use crate::attenuation::attenuated;
use crate::envelope::CrossProtocolCapabilityEnvelope;
use crate::executor::TargetProtocolExecutor;
use crate::registry::TargetProtocolRegistry;
use crate::request::{MAX_ORIGIN_ID, OrchestratedRequest, refused};
use crate::route::{
    RouteAvailabilityStatus, RoutePlanningOutcome, RouteSelectionEvidence, Wanted, plan,
};
use crate::trace::{Crossing, EVIDENCE_MEMBER, bridge_id};
use chio_core::capability_ref::CrossProtocolCapabilityRef;

/// How large the envelope, the route and the trace may be in a receipt, in bytes.
const MAX_EVIDENCE: usize = 64 << 10;

/// How many levels of objects and arrays they may have.
const MAX_DEPTH: usize = 48;

/// How many grants of a token may speak of one tool.
const MAX_GRANTS: usize = 256;

/// How large an intent or what a model says of itself may be, in bytes of its canonical form.
const MAX_STATED: usize = 64 << 10;

/// What the orchestrator knows besides the request.
pub(crate) struct RouteContext<'a> {
    /// The kernel's own name of the call.
    pub(crate) request_id: String,
    /// What the caller speaks.
    pub(crate) source: DiscoveryProtocol,
    /// What the tool asks to be addressed as.
    pub(crate) requested: DiscoveryProtocol,
    /// In Unix seconds.
    pub(crate) now: u64,
    /// The trace that the call continues by the word of a kernel elsewhere that counts.
    pub(crate) continued: Option<String>,
    /// How honestly the caller's protocol can present the tool.
    pub(crate) fidelity: Option<BridgeFidelity>,
    pub(crate) registry: &'a TargetProtocolRegistry,
    pub(crate) availability: &'a BTreeMap<DiscoveryProtocol, RouteAvailabilityStatus>,
}

/// A request that is ready for the kernel.
#[derive(Debug)]
pub(crate) struct PreparedCall {
    pub(crate) call: ToolCall,
    /// Puts the answer into the target's shape; none for native, and none when no route is taken.
    pub(crate) executor: Option<Arc<dyn TargetProtocolExecutor>>,
}

impl PreparedCall {
    /// Prepares a request. Whatever is wrong with it becomes a denial that the kernel signs.
    pub(crate) fn new(
        mut request: OrchestratedRequest,
        route: RouteContext<'_>,
    ) -> Result<Self, CanonicalError> {
        let mut refusal = request.refusal.take();
        if let Some(problem) = request.problem(route.source) {
            refusal.get_or_insert_with(|| refused(problem));
        }
        if let Some(problem) = too_large(&request)? {
            refusal.get_or_insert_with(|| refused(problem));
            // The token is not checked yet: what is too large is not signed.
            (request.governed_intent, request.model) = (None, None);
        }
        let asked = Asked {
            reference: request.capability_ref.take(),
            context: request.protocol_context.take(),
            scope: request.scope.take(),
        };
        let context = asked.context.clone();
        let mut scratch = Scratch::default();
        let prepared = if refusal.is_none() && is_direct(&request, &asked, &route) {
            prepare_direct(&request, &route, &mut scratch)?
        } else {
            prepare_bridged(&request, asked, &route, (&mut scratch, &mut refusal))?
        };
        // A name that is refused stays out of what is signed.
        let named = request.is_named();
        let call = ToolCall {
            request_id: route.request_id,
            origin_request_id: named.then_some(request.origin_request_id),
            scope: prepared.scope,
            token: request.token,
            agent: request.agent,
            server_id: request.server_id,
            tool_name: request.tool_name,
            arguments: request.arguments,
            dpop_proof: request.dpop_proof,
            governed_intent: request.governed_intent,
            approval: request.approval,
            model: request.model,
            parent_request_id: request.parent.map(|parent| parent.request_id),
            task_id: request.task_id,
            target: prepared.target,
            fidelity: route.fidelity.map(Box::new),
            trace_id: Some(prepared.trace_id),
            context,
            evidence: prepared.evidence,
            refusal,
        };
        Ok(Self { call, executor: prepared.executor })
    }
}

/// What a request is when it comes to the kernel.
struct Prepared {
    /// What of the token's authority the kernel shall go by; none for all of it.
    scope: Option<ChioScope>,
    trace_id: String,
    target: DiscoveryProtocol,
    executor: Option<Arc<dyn TargetProtocolExecutor>>,
    /// Members of the receipt's metadata.
    evidence: Vec<(&'static str, Written)>,
}

/// Whether the call crosses no bridge at all: it comes in the kernel's own protocol, for a tool
/// that is addressed in it, without a wish about its route.
fn is_direct(request: &OrchestratedRequest, asked: &Asked, route: &RouteContext<'_>) -> bool {
    let native = DiscoveryProtocol::Native;
    route.source == native
        && route.requested == native
        && route.availability.get(&native).is_none_or(RouteAvailabilityStatus::is_available)
        && request.governed_intent.is_none()
        && asked.reference.is_none()
        && asked.context.is_none()
        && asked.scope.is_none()
}

/// A call that crosses no bridge: there is a trace to open, and nothing to plan or to narrow.
fn prepare_direct(
    request: &OrchestratedRequest,
    route: &RouteContext<'_>,
    scratch: &mut Scratch,
) -> Result<Prepared, CanonicalError> {
    let target = DiscoveryProtocol::Native;
    let bridge_id = bridge_id(route.source, target, &request.origin_request_id);
    let capability_id = bounded(&request.token.id);
    let crossing = crossing(request, route, (&bridge_id, &capability_id), (None, target));
    let trace_id = trace_id(request, route, &crossing, scratch)?;
    let evidence = vec![(EVIDENCE_MEMBER, crossing.direct_evidence(&trace_id, scratch)?)];
    Ok(Prepared { scope: None, trace_id, target, executor: None, evidence })
}

/// A call that crosses a bridge: its route is planned, its authority narrowed, and both are told.
fn prepare_bridged(
    request: &OrchestratedRequest,
    asked: Asked,
    route: &RouteContext<'_>,
    (scratch, refusal): (&mut Scratch, &mut Option<Denial>),
) -> Result<Prepared, CanonicalError> {
    let origin = if request.is_named() { &request.origin_request_id } else { &route.request_id };
    let plan = planned(request, origin, route, (scratch, refusal));
    let target = plan.as_ref().and_then(|plan| plan.target);
    let executor = target.and_then(|target| route.registry.executor(target).cloned());
    let target = target.unwrap_or(route.requested);
    let mut prepared = cross(request, asked, (plan.as_ref(), target), route, (scratch, refusal))?;
    prepared.executor = executor;
    if let Some(plan) = plan {
        let written = Written::with(scratch, &plan.evidence)?;
        prepared.evidence.push((RouteSelectionEvidence::METADATA_MEMBER, written));
    }
    Ok(prepared)
}

fn crossing<'a>(
    request: &'a OrchestratedRequest,
    route: &'a RouteContext<'_>,
    (bridge_id, capability_id): (&'a str, &'a str),
    (plan, target): (Option<&RoutePlanningOutcome>, DiscoveryProtocol),
) -> Crossing<'a> {
    let named = request.is_named();
    Crossing {
        origin_request_id: if named { &request.origin_request_id } else { &route.request_id },
        kernel_request_id: &route.request_id,
        parent_request_id: request.parent.as_ref().map(|parent| &*parent.request_id),
        bridge_id,
        source: route.source,
        target,
        denied: plan.is_some_and(|plan| plan.target.is_none()),
        capability_id,
        agent: &request.agent,
        now: route.now,
    }
}

/// The trace of the call that this one is made for, or that it continues; else a new one.
fn trace_id(
    request: &OrchestratedRequest,
    route: &RouteContext<'_>,
    crossing: &Crossing<'_>,
    scratch: &mut Scratch,
) -> Result<String, CanonicalError> {
    match (&request.parent, &route.continued) {
        (Some(parent), _) => Ok(parent.trace_id.clone()),
        (None, Some(trace_id)) => Ok(trace_id.clone()),
        (None, None) => crossing.trace_id(scratch),
    }
}

/// Narrows the authority to the target, opens or continues the trace, and writes down both.
fn cross(
    request: &OrchestratedRequest,
    asked: Asked,
    (plan, target): (Option<&RoutePlanningOutcome>, DiscoveryProtocol),
    route: &RouteContext<'_>,
    (scratch, refusal): (&mut Scratch, &mut Option<Denial>),
) -> Result<Prepared, CanonicalError> {
    let named = request.is_named();
    let origin = if named { &request.origin_request_id } else { &route.request_id };
    let (bridge_id, capability_id) =
        (bridge_id(route.source, route.requested, origin), bounded(&request.token.id));
    let crossing = crossing(request, route, (&bridge_id, &capability_id), (plan, target));
    let trace_id = trace_id(request, route, &crossing, scratch)?;
    let mut envelope = envelope(request, asked, &crossing, refusal.is_some())?;
    let mut evidence = crossing.evidence(&trace_id, &envelope, scratch)?;
    if evidence.as_str().len() > MAX_EVIDENCE || scratch.size().depth > MAX_DEPTH {
        let problem = format!(
            "expected a scope for the tool and a context of at most {MAX_EVIDENCE} bytes and \
             {MAX_DEPTH} levels, found more than a receipt can carry"
        );
        refusal.get_or_insert_with(|| refused(problem));
        envelope.attenuated_scope = ChioScope::default();
        envelope.capability_ref.protocol_context = None;
        evidence = crossing.evidence(&trace_id, &envelope, scratch)?;
    }
    let mut members = Vec::with_capacity(2);
    members.push((EVIDENCE_MEMBER, evidence));
    let scope = Some(envelope.attenuated_scope);
    Ok(Prepared { scope, trace_id, target, executor: None, evidence: members })
}

/// What of a request is larger than a receipt can carry, if anything is. The envelope is looked at
/// when it is written.
fn too_large(request: &OrchestratedRequest) -> Result<Option<String>, CanonicalError> {
    let sizes = [
        ("a governed intent", request.governed_intent.as_ref().map(canonical::size)),
        ("model metadata", request.model.as_ref().map(canonical::size)),
    ];
    for (what, size) in sizes {
        let Some(size) = size.transpose()? else { continue };
        if size.bytes > MAX_STATED || size.depth > MAX_DEPTH {
            return Ok(Some(format!(
                "expected {what} of at most {MAX_STATED} bytes and {MAX_DEPTH} levels, found more"
            )));
        }
    }
    let (server, tool) = (&request.server_id, &request.tool_name);
    let grants = request.token.scope.grants.iter();
    let speaking = grants.filter(|grant| grant.covers(server, tool)).count();
    Ok((speaking > MAX_GRANTS)
        .then(|| format!("expected at most {MAX_GRANTS} grants for the tool, found {speaking}")))
}

/// A name as the envelope can carry it: itself, or its hash.
fn bounded(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_ORIGIN_ID {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("sha256:{}", sha256_hex(name.as_bytes())))
}

/// The route, planned under the caller's name of the call. None when the caller's wishes cannot be
/// read.
fn planned(
    request: &OrchestratedRequest,
    origin: &str,
    route: &RouteContext<'_>,
    (scratch, refusal): (&mut Scratch, &mut Option<Denial>),
) -> Option<RoutePlanningOutcome> {
    let wanted = Wanted {
        request_id: origin,
        source: route.source,
        requested: route.requested,
        governed_intent: request.governed_intent.as_deref(),
    };
    match plan(&wanted, route.registry, route.availability, scratch) {
        Ok(plan) => {
            if plan.target.is_none() {
                let reason = plan.evidence.reason.as_deref().unwrap_or("no route is left");
                refusal.get_or_insert_with(|| {
                    Denial::by_kernel(ErrorCode::GuardDenied, format!("no route: {reason}"))
                });
            }
            Some(plan)
        }
        Err(error) => {
            refusal.get_or_insert_with(|| refused(error.to_string()));
            None
        }
    }
}

/// What the caller said about the authority that it uses.
struct Asked {
    reference: Option<CrossProtocolCapabilityRef>,
    context: Option<Value>,
    scope: Option<ChioScope>,
}

/// The authority that crosses the bridge: what the caller wants used, or else what the token has
/// for this tool.
fn envelope(
    request: &OrchestratedRequest,
    asked: Asked,
    crossing: &Crossing<'_>,
    refused: bool,
) -> Result<CrossProtocolCapabilityEnvelope, CanonicalError> {
    let Asked { reference, context, scope } = asked;
    let mut capability_ref = match reference {
        // SECURITY: what was called, and by which message, is for the edge to say.
        Some(reference) => CrossProtocolCapabilityRef { protocol_context: context, ..reference },
        None => CrossProtocolCapabilityRef::to_token(&request.token, crossing.source, context)?,
    };
    crossing.capability_id.clone_into(&mut capability_ref.chio_capability_id);
    // SECURITY: the token is not checked yet; a refused call is not worth a copy of it.
    let of_token = || {
        if refused {
            return ChioScope::default();
        }
        attenuated(&request.token.scope, &request.server_id, &request.tool_name)
    };
    Ok(CrossProtocolCapabilityEnvelope {
        attenuated_scope: scope.unwrap_or_else(of_token),
        bridge_id: crossing.bridge_id.to_owned(),
        bridged_at: crossing.now,
        capability_ref,
        schema: CrossProtocolCapabilityEnvelope::SCHEMA.to_owned(),
        target_protocol: crossing.target,
    })
}

#[cfg(test)]
mod tests;
