//! How honestly each surface can present a tool: one engine, and a table for each surface.

mod category;
mod tables;

use chio_core::fidelity::{BridgeFidelity, BridgeSemanticHints};
use chio_core::manifest::ToolDefinition;

pub use category::AcpCategory;

use crate::DiscoveryProtocol;
use tables::Condition;

/// Where a tool is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Surface {
    /// Chio's own frames.
    Native,
    /// Plain HTTP.
    Http,
    /// Model Context Protocol.
    Mcp,
    /// Agent2Agent.
    A2a,
    /// Agent Client Protocol.
    Acp,
    /// Function calls as OpenAI writes them.
    OpenAi,
    /// An HTTP API that is offered as tools.
    OpenApi,
}

impl From<DiscoveryProtocol> for Surface {
    fn from(protocol: DiscoveryProtocol) -> Self {
        match protocol {
            DiscoveryProtocol::Native => Self::Native,
            DiscoveryProtocol::Http => Self::Http,
            DiscoveryProtocol::Mcp => Self::Mcp,
            DiscoveryProtocol::A2a => Self::A2a,
            DiscoveryProtocol::Acp => Self::Acp,
            DiscoveryProtocol::OpenAi => Self::OpenAi,
        }
    }
}

/// What is asked about a tool before it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Facts {
    /// What the tool says about itself.
    pub hints: BridgeSemanticHints,
    /// Whether a call changes anything.
    pub has_side_effects: bool,
    /// Whether there is an executor for the protocol that the tool is called by.
    pub target_supported: bool,
    /// What kind of thing the tool works on.
    pub category: AcpCategory,
}

impl Facts {
    /// The facts about a tool; `default` is the category of a tool whose name does not tell.
    pub fn of(tool: &ToolDefinition, target_supported: bool, default: AcpCategory) -> Self {
        Self {
            hints: BridgeSemanticHints::of(tool),
            has_side_effects: tool.has_side_effects,
            target_supported,
            category: AcpCategory::of(&tool.name, default),
        }
    }

    fn meet(&self, condition: Condition) -> bool {
        match condition {
            Condition::Withheld => !self.hints.publish,
            Condition::NoExecutor => !self.target_supported,
            Condition::Approval => self.hints.approval_required,
            Condition::SideEffects => self.has_side_effects,
            Condition::Streams => self.hints.streams_output,
            Condition::PartialOutput => self.hints.partial_output,
            Condition::Cancellation => self.hints.supports_cancellation,
            Condition::Category(category) => self.category == category,
        }
    }

    fn meet_all(&self, conditions: &[Condition]) -> bool {
        conditions.iter().all(|condition| self.meet(*condition))
    }
}

/// How honestly `surface` can present a tool with these facts.
///
/// The first refusal that fits decides; without one, every caveat that fits is told.
pub fn fidelity(surface: Surface, facts: &Facts) -> BridgeFidelity {
    let table = surface.table();
    let mut refusals = tables::EVERYWHERE.iter().chain(table.refusals);
    if let Some((_, reason)) = refusals.find(|(conditions, _)| facts.meet_all(conditions)) {
        return BridgeFidelity::Unsupported { reason: (*reason).to_owned() };
    }
    let told = table.caveats.iter().filter(|(conditions, _)| facts.meet_all(conditions));
    let caveats: Vec<_> = told.map(|(_, caveat)| (*caveat).to_owned()).collect();
    if caveats.is_empty() {
        return BridgeFidelity::Lossless;
    }
    BridgeFidelity::Adapted { caveats }
}

#[cfg(test)]
mod tests;
