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
    use chio_kernel::{Evaluation, Outcome};
    use serde_json::{Value, json};

    use super::*;
    use crate::executor::CrossProtocolTargetRequest;
    use crate::executor::tests::project;

    /// An executor that says which one it is.
    #[derive(Debug, Clone)]
    struct Named(DiscoveryProtocol, &'static str);

    impl TargetProtocolExecutor for Named {
        fn protocol(&self) -> DiscoveryProtocol {
            self.0
        }

        fn project(&self, _: &CrossProtocolTargetRequest<'_>, _: &Evaluation) -> Value {
            json!([self.0, self.1])
        }
    }

    // covers: CROSS-005
    #[test]
    fn each_protocol_has_the_executor_that_was_registered_for_it_last() {
        use DiscoveryProtocol::{A2a, Acp, Http, Mcp, OpenAi};
        let mut registry = TargetProtocolRegistry::complete();
        for executor in [Named(Mcp, "old"), Named(A2a, "mine"), Named(Mcp, "new")] {
            registry = registry.with_executor(&executor);
        }
        let answer = |protocol| {
            let executor = registry.executor(protocol).unwrap().as_ref();
            project(executor, Outcome::Value(json!("x")), &[])
        };
        assert_eq!(answer(Mcp), json!(["mcp", "new"]));
        assert_eq!(answer(A2a), json!(["a2a", "mine"]));
        // The others are as they were, each in the shape of its own protocol.
        let complete = TargetProtocolRegistry::complete();
        for protocol in [Http, Acp, OpenAi] {
            let built_in = complete.executor(protocol).unwrap().as_ref();
            assert_eq!(answer(protocol), project(built_in, Outcome::Value(json!("x")), &[]));
        }
        let shapes: Vec<String> =
            [Http, Mcp, A2a, Acp, OpenAi].map(|it| answer(it).to_string()).to_vec();
        let distinct: std::collections::BTreeSet<&String> = shapes.iter().collect();
        assert_eq!(distinct.len(), shapes.len(), "{shapes:?}");
    }

    // covers: CROSS-026
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
