//! Receipts of what the operator does with a kernel's store: calls of the server `chio_control`,
//! which no client can make.

use chio_core::canonical::Written;
use chio_core::receipt::{Decision, NO_OUTPUT_HASH, RedactionMode, ToolCallAction};
use serde_json::Value;

use crate::error::KernelError;
use crate::kernel::ChioKernel;
use crate::metadata::Metadata;
use crate::store::Intent;

/// The server that these receipts name, and the capability, since no token is presented.
const CONTROL: &str = "chio_control";

impl ChioKernel {
    /// Signs and appends the receipt of something that was done with the store, under the name of
    /// a tool. Gives the receipt's id.
    ///
    /// # Errors
    /// When no receipt could be made durable.
    pub async fn record_control(
        &self,
        tool_name: &str,
        parameters: Value,
    ) -> Result<String, KernelError> {
        let (inner, request_id) = (self.inner(), self.new_request_id());
        let mut metadata = Metadata::default();
        metadata.set_context(&request_id);
        let record = Intent {
            request_id,
            capability_id: CONTROL.to_owned(),
            tool_server: CONTROL.to_owned(),
            tool_name: tool_name.to_owned(),
            action: ToolCallAction::new(parameters)?,
            redaction: RedactionMode::None,
            policy_hash: self.pipeline().policy_hash().to_owned(),
            evidence: Vec::new(),
            metadata: Written::of(&metadata)?,
            tenant_id: None,
            started_at: inner.clock.unix_seconds(),
            parked: false,
        };
        inner.record(record, metadata, Decision::Allow, NO_OUTPUT_HASH.to_owned()).await
    }
}
