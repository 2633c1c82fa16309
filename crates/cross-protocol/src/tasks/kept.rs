//! What is kept of a request until it runs.

use chio_core::capability::{CapabilityToken, ChioScope};
use chio_core::capability_ref::CrossProtocolCapabilityRef;
use chio_core::crypto::PublicKey;
use chio_core::governance::{GovernedTransactionIntent, ModelMetadata};
use chio_core::principal::Principal;
use chio_kernel::store::Task;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Presented, TaskError};
use crate::request::OrchestratedRequest;

/// What is kept of a request.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    token: CapabilityToken,
    agent: PublicKey,
    pub(super) server_id: String,
    pub(super) tool_name: String,
    arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capability_ref: Option<CrossProtocolCapabilityRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    governed_intent: Option<Box<GovernedTransactionIntent>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Box<ModelMetadata>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) protocol_context: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meta: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<ChioScope>,
    /// Who called, for a task that runs without being asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) principal: Option<Box<Principal>>,
}

impl Kept {
    pub(super) fn read(task: &Task) -> Result<Self, TaskError> {
        serde_json::from_slice(&task.new.request)
            .map_err(|error| TaskError::Unreadable(error.to_string()))
    }

    pub(super) fn new(request: OrchestratedRequest, principal: Option<&Principal>) -> Self {
        Self {
            token: (*request.token).clone(),
            agent: request.agent,
            server_id: request.server_id,
            tool_name: request.tool_name,
            arguments: request.arguments,
            capability_ref: request.capability_ref,
            governed_intent: request.governed_intent,
            model: request.model,
            protocol_context: request.protocol_context,
            meta: request.meta,
            scope: request.scope,
            principal: principal.cloned().map(Box::new),
        }
    }

    /// The request again, as the call of this task, with what came with the request to run it.
    pub(super) fn into_request(self, task_id: &str, presented: Presented) -> OrchestratedRequest {
        let (server, tool) = (self.server_id, self.tool_name);
        let request = OrchestratedRequest::new(task_id, self.token, server, tool, self.arguments);
        OrchestratedRequest {
            agent: self.agent,
            capability_ref: self.capability_ref,
            governed_intent: self.governed_intent,
            model: self.model,
            protocol_context: self.protocol_context,
            meta: self.meta,
            scope: self.scope,
            dpop_proof: presented.dpop_proof,
            approval: presented.approval,
            task_id: Some(task_id.to_owned()),
            ..request
        }
    }

    /// Whether every grant that speaks of the tool asks for a proof of possession.
    pub(super) fn asks_for_proof(&self) -> bool {
        let (server, tool) = (&self.server_id, &self.tool_name);
        let mut grants =
            self.token.scope.grants.iter().filter(|it| it.covers(server, tool)).peekable();
        grants.peek().is_some() && grants.all(|grant| grant.dpop_required == Some(true))
    }

    /// Whether the token may hold at this time.
    pub(super) fn is_in_time(&self, now: u64) -> bool {
        self.token.validity().check(now).is_ok()
    }
}
