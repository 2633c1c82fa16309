//! Which protocols a tool can be called by here.

use std::collections::BTreeMap;
use std::sync::Arc;

use chio_core::fidelity::{TargetProtocolError, target_protocol_of};
use chio_core::manifest::ToolDefinition;

use crate::DiscoveryProtocol;
use crate::executor::TargetProtocolExecutor;
use crate::executors::{
    A2aTargetExecutor, AcpTargetExecutor, HttpTargetExecutor, McpTargetExecutor,
    OpenAiTargetExecutor,
};

/// The executors at hand, and the protocol of tools that name none.
///
/// Native needs no executor: what the kernel answers is native.
#[derive(Debug, Clone)]
pub struct TargetProtocolRegistry {
    default: DiscoveryProtocol,
    executors: BTreeMap<DiscoveryProtocol, Arc<dyn TargetProtocolExecutor>>,
}

impl TargetProtocolRegistry {
    /// A registry that knows native alone.
    pub const fn new(default: DiscoveryProtocol) -> Self {
        Self { default, executors: BTreeMap::new() }
    }

    /// A registry with every executor, whose default is native.
    pub fn complete() -> Self {
        Self::new(DiscoveryProtocol::Native)
            .with_executor(&HttpTargetExecutor)
            .with_executor(&McpTargetExecutor)
            .with_executor(&A2aTargetExecutor)
            .with_executor(&AcpTargetExecutor)
            .with_executor(&OpenAiTargetExecutor)
    }

    /// Adds a handle of this executor; the last for a protocol is the one that counts.
    #[must_use]
    pub fn with_executor<E>(mut self, executor: &E) -> Self
    where
        E: TargetProtocolExecutor + Clone + 'static,
    {
        self.executors.insert(executor.protocol(), Arc::new(executor.clone()));
        self
    }

    /// The executor for a protocol.
    pub fn executor(
        &self,
        protocol: DiscoveryProtocol,
    ) -> Option<&Arc<dyn TargetProtocolExecutor>> {
        self.executors.get(&protocol)
    }

    /// Whether a tool can be called by this protocol here.
    #[must_use]
    pub fn supports(&self, protocol: DiscoveryProtocol) -> bool {
        protocol == DiscoveryProtocol::Native || self.executors.contains_key(&protocol)
    }

    /// The protocol of tools that name none.
    pub const fn default_target(&self) -> DiscoveryProtocol {
        self.default
    }

    /// The protocol that a tool is called by: the one that it names, or the default. Whether it is
    /// supported is another question.
    ///
    /// # Errors
    /// When what the tool names is no protocol.
    pub fn target_of(
        &self,
        tool: &ToolDefinition,
    ) -> Result<DiscoveryProtocol, TargetProtocolError> {
        Ok(target_protocol_of(tool)?.unwrap_or(self.default))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    // covers: CROSS-005, CROSS-026
    #[test]
    fn native_is_always_there_and_the_others_when_they_are_registered() {
        let open_ai = OpenAiTargetExecutor::default();
        let registry =
            TargetProtocolRegistry::new(DiscoveryProtocol::Native).with_executor(&open_ai);
        for protocol in DiscoveryProtocol::ALL {
            let native = protocol == DiscoveryProtocol::Native;
            let registered = protocol == DiscoveryProtocol::OpenAi;
            assert_eq!(registry.supports(protocol), native || registered, "{protocol}");
            let found = registry.executor(protocol).map(|executor| executor.protocol());
            assert_eq!(found, registered.then_some(protocol));
        }
    }

    #[test]
    fn the_complete_registry_supports_every_protocol() {
        let registry = TargetProtocolRegistry::complete();
        assert_eq!(registry.default_target(), DiscoveryProtocol::Native);
        for protocol in DiscoveryProtocol::ALL {
            assert!(registry.supports(protocol), "{protocol}");
            let found = registry.executor(protocol).map(|executor| executor.protocol());
            assert_eq!(found, (protocol != DiscoveryProtocol::Native).then_some(protocol));
        }
    }

    // covers: CROSS-026
    #[test]
    fn a_registry_outlives_the_executor_that_it_was_given() {
        let registry = {
            let executor = OpenAiTargetExecutor::default();
            TargetProtocolRegistry::new(DiscoveryProtocol::Mcp).with_executor(&executor)
        };
        assert!(registry.supports(DiscoveryProtocol::OpenAi));
    }

    // covers: CROSS-006, CROSS-007
    #[test]
    fn a_tool_that_names_no_target_gets_the_default() {
        let tool = |schema: Value| {
            serde_json::from_value::<ToolDefinition>(json!({
                "name": "t", "description": "", "input_schema": schema, "has_side_effects": false,
            }))
            .unwrap()
        };
        let named = tool(json!({"x-chio-target-protocol": "a2a"}));
        let odd = tool(json!({"x-chio-target-protocol": "grpc"}));
        for default in DiscoveryProtocol::ALL {
            let registry = TargetProtocolRegistry::new(default);
            assert_eq!(registry.target_of(&tool(json!({}))), Ok(default));
            assert_eq!(registry.target_of(&named), Ok(DiscoveryProtocol::A2a));
            assert!(registry.target_of(&odd).is_err());
        }
    }
}
