//! What comes of an orchestrated call.

use std::sync::Arc;

use chio_kernel::Evaluation;
use serde_json::Value;

use crate::DiscoveryProtocol;
use crate::executor::{CrossProtocolTargetRequest, TargetProtocolExecutor};

/// A call that ran through the orchestrator. Its receipt carries the route, the envelope and the
/// trace.
#[derive(Debug)]
pub struct OrchestratedToolCall {
    /// How it ended, with its receipt.
    pub evaluation: Evaluation,
    /// The kernel's own name of the call.
    pub request_id: String,
    /// The act that it is part of.
    pub trace_id: String,
    /// The protocol that the route selected; the requested one when it selected none.
    pub target: DiscoveryProtocol,
    /// What is needed to put the answer into the target's shape.
    pub(crate) projection: Option<Box<Projection>>,
}

/// How the answer is put into the target's shape.
#[derive(Debug)]
pub(crate) struct Projection {
    pub(crate) executor: Arc<dyn TargetProtocolExecutor>,
    pub(crate) origin_request_id: String,
    pub(crate) server_id: String,
    pub(crate) tool_name: String,
}

impl OrchestratedToolCall {
    /// A call without a target of its own: the native one.
    pub const fn native(evaluation: Evaluation, request_id: String, trace_id: String) -> Self {
        let target = DiscoveryProtocol::Native;
        Self { evaluation, request_id, trace_id, target, projection: None }
    }

    /// The answer as the selected protocol writes it, with the chunks that the caller was given;
    /// none for a native call, and none when no route was taken.
    pub fn protocol_result(&self, chunks: &[Value]) -> Option<Value> {
        let projection = self.projection.as_ref()?;
        let request = CrossProtocolTargetRequest {
            origin_request_id: &projection.origin_request_id,
            kernel_request_id: &self.request_id,
            server_id: &projection.server_id,
            tool_name: &projection.tool_name,
            target: self.target,
            chunks,
        };
        Some(projection.executor.project(&request, &self.evaluation))
    }
}
