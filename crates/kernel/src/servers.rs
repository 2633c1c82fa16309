//! The tool servers of a kernel, and what the road needs to know of their tools.

use std::collections::HashMap;
use std::sync::Arc;

use chio_core::capability::ToolGrant;
use chio_core::fidelity::{BridgeSemanticHints, check_approval_hint, target_protocol_of};
use chio_core::manifest::{ToolDefinition, ToolManifest};
use chio_core::money::MonetaryAmount;
use chio_core::protocol::DiscoveryProtocol;
use parking_lot::RwLock;
use serde_json::Value;

use crate::error::KernelError;
use crate::shown::{Remembered, Usable};
use crate::tool_server::ToolServerConnection;

/// A registered tool server.
pub(crate) struct Server {
    connection: Box<dyn ToolServerConnection>,
    catalogue: RwLock<Arc<Catalogue>>,
    /// What may be shown of what it says.
    pub(crate) shown: Shown,
}

/// What was looked at of what a server says.
#[derive(Default)]
pub(crate) struct Shown {
    pub(crate) manifests: Remembered<ToolManifest>,
    pub(crate) lists: Remembered<Vec<Value>>,
    pub(crate) usable: Usable,
}

/// What is known of the tools of one manifest.
struct Catalogue {
    manifest: Arc<ToolManifest>,
    tools: HashMap<String, ToolFacts>,
}

/// What the road needs to know of a tool.
#[derive(Debug, Clone)]
pub(crate) struct ToolFacts {
    /// The tool as it is published.
    pub(crate) definition: Arc<ToolDefinition>,
    pub(crate) has_side_effects: bool,
    pub(crate) approval_required: bool,
    pub(crate) price: Price,
    /// The protocol that it asks to be addressed by.
    pub(crate) target: Option<DiscoveryProtocol>,
}

/// What a call costs, as its manifest says.
#[derive(Debug, Clone)]
pub(crate) enum Price {
    /// Nothing.
    Free,
    /// This much.
    Fixed(MonetaryAmount),
    /// It depends on the call.
    Open,
}

impl Price {
    fn of(tool: &ToolDefinition) -> Self {
        let Some(pricing) = &tool.pricing else { return Self::Free };
        pricing.fixed_price().cloned().map_or(Self::Open, Self::Fixed)
    }

    /// The most that a call on this grant may cost; none when nothing is charged.
    pub(crate) fn ceiling(&self, grant: &ToolGrant) -> Result<Option<MonetaryAmount>, String> {
        match (self, &grant.max_cost_per_invocation, &grant.max_total_cost) {
            (Self::Free, _, _) | (Self::Open, None, None) => Ok(None),
            (Self::Fixed(price), _, _) => Ok(Some(price.clone())),
            (Self::Open, Some(most), _) => Ok(Some(most.clone())),
            (Self::Open, None, Some(_)) => Err(
                "the tool's price is not known in advance, and the grant does not say what one \
                 call may cost"
                    .to_owned(),
            ),
        }
    }
}

impl ToolFacts {
    /// What is known of something that costs nothing and changes nothing.
    pub(crate) const fn plain(definition: Arc<ToolDefinition>) -> Self {
        let (has_side_effects, approval_required) = (false, false);
        Self { definition, has_side_effects, approval_required, price: Price::Free, target: None }
    }

    fn of(tool: &ToolDefinition) -> Result<Self, KernelError> {
        let unclear = |problem| KernelError::Manifest(format!("tool `{}`: {problem}", tool.name));
        check_approval_hint(tool).map_err(unclear)?;
        let target = target_protocol_of(tool);
        Ok(Self {
            definition: Arc::new(tool.clone()),
            has_side_effects: tool.has_side_effects,
            approval_required: BridgeSemanticHints::of(tool).approval_required,
            price: Price::of(tool),
            target: target.map_err(|error| KernelError::Manifest(error.to_string()))?,
        })
    }
}

impl Server {
    pub(crate) fn new(connection: Box<dyn ToolServerConnection>) -> Result<Self, KernelError> {
        let manifest = connection.manifest();
        let facts = |tool: &ToolDefinition| Ok((tool.name.clone(), ToolFacts::of(tool)?));
        let tools = manifest.tools.iter().map(facts).collect::<Result<_, KernelError>>()?;
        let catalogue = RwLock::new(Arc::new(Catalogue { manifest, tools }));
        Ok(Self { connection, catalogue, shown: Shown::default() })
    }

    pub(crate) fn connection(&self) -> &dyn ToolServerConnection {
        &*self.connection
    }

    pub(crate) fn tool(&self, name: &str) -> Option<ToolFacts> {
        self.catalogue().tools.get(name).cloned()
    }

    /// What is known of the tools that the server has now. A tool that cannot be understood is left
    /// out: it cannot be called.
    fn catalogue(&self) -> Arc<Catalogue> {
        let manifest = self.connection.manifest();
        {
            let known = self.catalogue.read();
            if Arc::ptr_eq(&known.manifest, &manifest) {
                return Arc::clone(&known);
            }
        }
        let facts = |tool: &ToolDefinition| Some((tool.name.clone(), ToolFacts::of(tool).ok()?));
        let tools = manifest.tools.iter().filter_map(facts).collect();
        let catalogue = Arc::new(Catalogue { manifest, tools });
        let mut known = self.catalogue.write();
        *known = Arc::clone(&catalogue);
        catalogue
    }
}
