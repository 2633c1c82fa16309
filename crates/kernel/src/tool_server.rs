//! Tool servers, as the kernel sees them.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::manifest::ToolManifest;
use chio_core::money::MonetaryAmount;
use chio_core::protocol::DiscoveryProtocol;
use serde_json::Value;

use crate::call_context::CallContext;
use crate::error::KernelError;
use crate::resource_provider::ResourceProvider;
use crate::road::Permit;

/// What a tool server is asked to run.
#[derive(Debug)]
pub struct ToolInvocation {
    /// The kernel's own name of the call.
    pub request_id: String,
    /// The act that it is part of; calls that the tool makes for it belong there, too.
    pub trace_id: Option<String>,
    /// The tool.
    pub tool_name: String,
    /// The arguments.
    pub arguments: Value,
    /// What the caller's protocol calls the thing that is called, and the message that calls it.
    pub context: Option<Value>,
    /// What the client adds to its request for the server, such as `traceparent`.
    pub meta: Option<Value>,
}

/// What a tool came to.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The value; none when everything went out as chunks.
    pub value: Option<Value>,
    /// What the call cost, where the tool says so; its price otherwise.
    pub cost: Option<MonetaryAmount>,
}

impl ToolOutput {
    /// A value.
    pub const fn value(value: Value) -> Self {
        Self { value: Some(value), cost: None }
    }

    /// The end of a stream whose chunks went through [`CallContext::chunk`].
    pub const fn stream_end() -> Self {
        Self { value: None, cost: None }
    }
}

/// A connection to something that has tools.
///
/// It is dropped at any await point when the call is cancelled or its time is up.
#[async_trait]
pub trait ToolServerConnection: Send + Sync {
    /// What it offers now, and under which name, which never changes. Tools that it does not list
    /// are never called.
    fn manifest(&self) -> Arc<ToolManifest>;

    /// What it really speaks.
    fn protocol(&self) -> DiscoveryProtocol {
        DiscoveryProtocol::Native
    }

    /// Runs a tool. The permit is the kernel's word that this call, and no other, may run.
    ///
    /// The call counts as begun from here on. A connection that may fail before anything is sent
    /// says so: [`CallContext::not_sent`], then [`CallContext::sent`].
    ///
    /// # Errors
    /// [`KernelError::ToolServerError`] or [`KernelError::Answered`] when the server answered with an
    /// error, [`KernelError::Incomplete`] when its answer did not come; with what went wrong, for the
    /// caller to read.
    async fn invoke(
        &self,
        permit: Permit,
        invocation: ToolInvocation,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError>;

    /// Stops what runs for it. Nothing can be called any more.
    async fn stop(&self) {}

    /// What it has besides tools.
    fn resources(&self) -> Option<&dyn ResourceProvider> {
        None
    }
}
