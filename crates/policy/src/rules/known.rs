//! What the engine calls agents, servers and tools.
//!
//! Names are put into entities as they are and never become a part of Cedar text, so that no name
//! can say more than itself.

use std::collections::HashSet;
use std::sync::Arc;

use cedar_policy::{Entities, Entity, EntityId, EntityTypeName, EntityUid};

use super::slice::{Group, Slices};
use crate::tool_cache::ToolCache;

/// A tool as the engine knows it.
#[derive(Debug)]
pub(super) struct KnownTool {
    /// The tool.
    pub(super) uid: EntityUid,
    /// The tool in its server.
    pub(super) entities: Entities,
    /// The groups of slices that can speak of it.
    pub(super) groups: Vec<Arc<Group>>,
}

/// The kinds of entities, and the tools met so far.
#[derive(Debug)]
pub(super) struct Known {
    agent: EntityTypeName,
    server: EntityTypeName,
    tool: EntityTypeName,
    action: EntityUid,
    tools: ToolCache<KnownTool>,
}

impl Known {
    /// Nothing but the kinds of entities.
    pub(super) fn new() -> Option<Self> {
        let kind = |name: &str| name.parse::<EntityTypeName>().ok();
        let action = EntityUid::from_type_name_and_id(kind("Action")?, EntityId::new("call"));
        let (agent, server, tool) = (kind("Agent")?, kind("Server")?, kind("Tool")?);
        Some(Self { agent, server, tool, action, tools: ToolCache::new() })
    }

    /// The one thing that agents do.
    pub(super) fn action(&self) -> EntityUid {
        self.action.clone()
    }

    /// An agent by its key.
    pub(super) fn agent(&self, key: &str) -> EntityUid {
        EntityUid::from_type_name_and_id(self.agent.clone(), EntityId::new(key))
    }

    /// A tool of a server.
    ///
    /// # Errors
    /// When the engine refuses the pair.
    pub(super) fn tool(
        &self,
        server: &str,
        tool: &str,
        slices: &Slices,
    ) -> Result<Arc<KnownTool>, String> {
        self.tools.get_or_make(server, tool, |_| true, || self.make(server, tool, slices))
    }

    fn make(&self, server: &str, tool: &str, slices: &Slices) -> Result<KnownTool, String> {
        let id = tool_id(server, tool);
        let groups = slices.groups(server, &id);
        let uid = EntityUid::from_type_name_and_id(self.tool.clone(), EntityId::new(id));
        let server = EntityUid::from_type_name_and_id(self.server.clone(), EntityId::new(server));
        let entity = Entity::new_no_attrs(uid.clone(), HashSet::from([server]));
        let entities = Entities::from_entities([entity], None);
        let entities =
            entities.map_err(|_| "the tool cannot be put before the rules".to_owned())?;
        Ok(KnownTool { uid, entities, groups })
    }
}

/// The name of a tool among all servers. The first `/` ends the server: one in its name is escaped.
pub(super) fn tool_id(server: &str, tool: &str) -> String {
    if server.contains(['/', '%']) {
        let server = server.replace('%', "%25").replace('/', "%2F");
        return format!("{server}/{tool}");
    }
    format!("{server}/{tool}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_cache::MAX_TOOLS;

    #[test]
    fn no_two_tools_share_a_name() {
        let pairs = [
            ("a", "b/c"),
            ("a/b", "c"),
            ("a%2Fb", "c"),
            ("a%b", "c"),
            ("a", "b\"::c"),
            ("", "a/b/c"),
            ("a\"", "b"),
        ];
        let ids: HashSet<String> = pairs.iter().map(|(one, other)| tool_id(one, other)).collect();
        assert_eq!(ids.len(), pairs.len());
        assert_eq!(tool_id("a/b%", "c/d"), "a%2Fb%25/c/d");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (known, slices) = (Known::new().unwrap(), Slices::default());
        for number in 0..=MAX_TOOLS {
            known.tool(&format!("s{}", number % 7), &format!("t{number}"), &slices).unwrap();
        }
        let count = known.tools.len();
        assert!((1..=MAX_TOOLS).contains(&count), "{count}");
    }
}
