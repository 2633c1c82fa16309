//! What the engine calls agents, servers and tools.
//!
//! Names are put into entities as they are and never become a part of Cedar text, so that no name
//! can say more than itself.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use cedar_policy::{Entities, Entity, EntityId, EntityTypeName, EntityUid};

use super::slice::{Group, Slices};

/// How many tools are remembered.
const MAX_TOOLS: usize = 4096;

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

/// By server, then by name.
type Tools = HashMap<String, HashMap<String, Arc<KnownTool>>>;

/// The kinds of entities, and the tools met so far.
#[derive(Debug)]
pub(super) struct Known {
    agent: EntityTypeName,
    server: EntityTypeName,
    tool: EntityTypeName,
    action: EntityUid,
    tools: RwLock<Tools>,
}

impl Known {
    /// Nothing but the kinds of entities.
    pub(super) fn new() -> Option<Self> {
        let kind = |name: &str| name.parse::<EntityTypeName>().ok();
        let action = EntityUid::from_type_name_and_id(kind("Action")?, EntityId::new("call"));
        let (agent, server, tool) = (kind("Agent")?, kind("Server")?, kind("Tool")?);
        Some(Self { agent, server, tool, action, tools: RwLock::default() })
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
        {
            let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = tools.get(server).and_then(|tools| tools.get(tool)) {
                return Ok(Arc::clone(known));
            }
        }
        let made = Arc::new(self.make(server, tool, slices)?);
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        // Tools come and go with their servers; to forget all of them now and then is enough.
        if tools.values().map(HashMap::len).sum::<usize>() >= MAX_TOOLS {
            tools.clear();
        }
        tools.entry(server.to_owned()).or_default().insert(tool.to_owned(), Arc::clone(&made));
        Ok(made)
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
        let count: usize = known.tools.read().unwrap().values().map(HashMap::len).sum();
        assert!((1..=MAX_TOOLS).contains(&count), "{count}");
    }
}
