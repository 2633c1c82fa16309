//! One request on its way to the kernel: resolved, narrowed, planned and traced.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use chio_core::canonical::{self, CanonicalError, Scratch, Written};
use chio_core::capability::ChioScope;
use chio_core::fidelity::BridgeFidelity;
use chio_core::registry::ErrorCode;
use chio_core::text::name_or_hash;
use chio_kernel::{Denial, ToolCall};
use serde_json::Value;

use crate::DiscoveryProtocol;
use crate::attenuation::attenuated;
use crate::envelope::CrossProtocolCapabilityEnvelope;
use crate::executor::TargetProtocolExecutor;
use crate::registry::TargetProtocolRegistry;
use crate::request::{MAX_ORIGIN_ID, OrchestratedRequest, malformed};
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
    /// What the tool's server speaks.
    pub(crate) spoken: DiscoveryProtocol,
    /// The time now, in Unix seconds.
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
        let mut work = Work { scratch: Scratch::default(), refusal: request.refusal.take() };
        if let Some(problem) = request.problem(route.source) {
            work.refuse(problem);
        }
        if let Some(problem) = too_large(&request)? {
            work.refuse(problem);
            // The token is not checked yet: what is too large is not signed.
            (request.governed_intent, request.model) = (None, None);
        }
        let asked = Asked {
            reference: request.capability_ref.take(),
            context: request.protocol_context.take(),
            scope: request.scope.take(),
        };
        let context = asked.context.clone();
        // A name that is refused stays out of what is signed.
        let is_named = request.is_named();
        let named = Named::new(&request, &route, is_named);
        // No authority crosses a bridge with what is no token.
        let is_unreadable = request.token.problem().is_some();
        let direct = work.refusal.is_none() && is_direct(&request, &asked, &route);
        let prepared = if direct || is_unreadable {
            named.prepare_direct(&mut work)?
        } else {
            named.prepare_bridged(asked, &mut work)?
        };
        let call = ToolCall {
            request_id: route.request_id,
            origin_request_id: is_named.then_some(request.origin_request_id),
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
            task: request.task,
            target: prepared.target,
            fidelity: route.fidelity.map(Box::new),
            trace_id: Some(prepared.trace_id),
            context,
            meta: request.meta,
            evidence: prepared.evidence,
            refusal: work.refusal,
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
/// that speaks it and is addressed in it, without a wish about its route.
fn is_direct(request: &OrchestratedRequest, asked: &Asked, route: &RouteContext<'_>) -> bool {
    let native = DiscoveryProtocol::Native;
    route.source == native
        && (route.requested, route.spoken) == (native, native)
        && route.availability.get(&native).is_none_or(RouteAvailabilityStatus::is_available)
        && request.governed_intent.is_none()
        && asked.reference.is_none()
        && asked.context.is_none()
        && asked.scope.is_none()
}

/// What is used and what comes up while a request is prepared.
struct Work {
    scratch: Scratch,
    /// The first denial that was decided on.
    refusal: Option<Denial>,
}

impl Work {
    fn refuse(&mut self, problem: String) {
        self.refusal.get_or_insert_with(|| malformed(problem));
    }
}

/// A request under the names that it has in what is signed.
struct Named<'a> {
    request: &'a OrchestratedRequest,
    route: &'a RouteContext<'a>,
    /// The caller's name of the call; the kernel's where that is refused.
    origin: &'a str,
    bridge_id: String,
    capability_id: Cow<'a, str>,
}

impl<'a> Named<'a> {
    fn new(request: &'a OrchestratedRequest, route: &'a RouteContext<'a>, is_named: bool) -> Self {
        let origin = if is_named { &request.origin_request_id } else { &route.request_id };
        Self {
            request,
            route,
            origin,
            bridge_id: bridge_id(route.source, route.requested, origin),
            capability_id: name_or_hash(&request.token.id, MAX_ORIGIN_ID),
        }
    }

    /// A call that crosses no bridge: there is a trace to open, and nothing to plan or to narrow.
    fn prepare_direct(&self, work: &mut Work) -> Result<Prepared, CanonicalError> {
        let target = DiscoveryProtocol::Native;
        let crossing = self.crossing(target, target);
        let trace_id = self.trace_id(&crossing, work)?;
        let written = crossing.direct_evidence(&trace_id, &mut work.scratch)?;
        let evidence = vec![(EVIDENCE_MEMBER, written)];
        Ok(Prepared { scope: None, trace_id, target, executor: None, evidence })
    }

    /// A call that crosses a bridge: its route is planned, its authority narrowed, and both are told.
    fn prepare_bridged(&self, asked: Asked, work: &mut Work) -> Result<Prepared, CanonicalError> {
        let plan = self.plan(work);
        let target = plan.as_ref().and_then(|plan| plan.target);
        // The tool of a call that is refused here is never spoken to.
        let spoken = match work.refusal {
            None => self.route.spoken,
            Some(_) => DiscoveryProtocol::Native,
        };
        let crossing = self.crossing(target.unwrap_or(self.route.requested), spoken);
        let mut prepared = self.cross(asked, &crossing, work)?;
        prepared.executor = target.and_then(|it| self.route.registry.executor(it).cloned());
        if let Some(plan) = plan {
            let written = Written::with(&mut work.scratch, &plan.evidence)?;
            prepared.evidence.push((RouteSelectionEvidence::METADATA_MEMBER, written));
        }
        Ok(prepared)
    }

    fn crossing(&self, target: DiscoveryProtocol, spoken: DiscoveryProtocol) -> Crossing<'_> {
        Crossing {
            origin_request_id: self.origin,
            kernel_request_id: &self.route.request_id,
            parent_request_id: self.request.parent.as_ref().map(|parent| &*parent.request_id),
            bridge_id: &self.bridge_id,
            source: self.route.source,
            target,
            spoken,
            capability_id: &self.capability_id,
            agent: &self.request.agent,
            now: self.route.now,
        }
    }

    /// The trace of the call that this one is made for, or that it continues; else a new one.
    fn trace_id(&self, crossing: &Crossing<'_>, work: &mut Work) -> Result<String, CanonicalError> {
        match (&self.request.parent, &self.route.continued) {
            (Some(parent), _) => Ok(parent.trace_id.clone()),
            (None, Some(trace_id)) => Ok(trace_id.clone()),
            (None, None) => crossing.trace_id(&mut work.scratch),
        }
    }

    /// Narrows the authority to the target, opens or continues the trace, and writes down both.
    fn cross(
        &self,
        asked: Asked,
        crossing: &Crossing<'_>,
        work: &mut Work,
    ) -> Result<Prepared, CanonicalError> {
        let mut trace_id = self.trace_id(crossing, work)?;
        let mut envelope = envelope(self.request, asked, crossing, work.refusal.is_some())?;
        let mut evidence = crossing.evidence(&trace_id, &envelope, &mut work.scratch)?;
        if evidence.as_str().len() > MAX_EVIDENCE || work.scratch.size().depth > MAX_DEPTH {
            work.refuse(format!(
                "expected a scope for the tool and a context of at most {MAX_EVIDENCE} bytes and \
                 {MAX_DEPTH} levels, found more than a receipt can carry"
            ));
            envelope.attenuated_scope = ChioScope::default();
            envelope.capability_ref.protocol_context = None;
            let crossing = Crossing { spoken: DiscoveryProtocol::Native, ..*crossing };
            trace_id = self.trace_id(&crossing, work)?;
            evidence = crossing.evidence(&trace_id, &envelope, &mut work.scratch)?;
        }
        let mut members = Vec::with_capacity(2);
        members.push((EVIDENCE_MEMBER, evidence));
        let (scope, target) = (Some(envelope.attenuated_scope), crossing.target);
        Ok(Prepared { scope, trace_id, target, executor: None, evidence: members })
    }

    /// The route, planned under the caller's name of the call. None when the caller's wishes cannot
    /// be read.
    fn plan(&self, work: &mut Work) -> Option<RoutePlanningOutcome> {
        let Self { request, route, origin, .. } = *self;
        let wanted = Wanted {
            request_id: origin,
            source: route.source,
            requested: route.requested,
            governed_intent: request.governed_intent.as_deref(),
        };
        match plan(&wanted, route.registry, route.availability, &mut work.scratch) {
            Ok(plan) => {
                if plan.target.is_none() {
                    let reason = plan.evidence.reason.as_deref().unwrap_or("no route is left");
                    work.refusal.get_or_insert_with(|| {
                        Denial::by_kernel(ErrorCode::GuardDenied, format!("no route: {reason}"))
                    });
                }
                Some(plan)
            }
            Err(error) => {
                work.refuse(error.to_string());
                None
            }
        }
    }
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
