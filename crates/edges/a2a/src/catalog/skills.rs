//! Tools as skills: what each is called, and how honestly it can be shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use chio_core::manifest::{ToolDefinition, ToolManifest};
use chio_cross_protocol::{
    AcpCategory, BridgeFidelity, CrossProtocolOrchestrator, DiscoveryProtocol, Facts, Surface,
    fidelity, target_protocol_of,
};

use crate::arguments::ArgumentReader;
use crate::config::A2aEdgeConfig;
use crate::error::Fault;

/// A tool as a skill.
#[derive(Debug, Clone)]
pub(crate) struct Skill {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) tags: Vec<String>,
    pub(crate) fidelity: BridgeFidelity,
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) argument_reader: ArgumentReader,
    /// The tool as the kernel knows it.
    definition: Arc<ToolDefinition>,
}

impl Skill {
    /// Whether the kernel still knows the tool as it was.
    pub(crate) fn is_current(&self, orchestrator: &CrossProtocolOrchestrator<'static>) -> bool {
        let known = orchestrator.tool(&self.server, &self.tool);
        known.is_some_and(|known| Arc::ptr_eq(&self.definition, &known))
    }
}

/// The skills of some manifests.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    manifests: Vec<ToolManifest>,
    /// Those that are shown, by id.
    skills: BTreeMap<String, Arc<Skill>>,
    /// Names that several servers have, and what their tools are called instead.
    ambiguous: BTreeMap<String, Vec<String>>,
}

impl Catalog {
    pub(crate) fn new(
        manifests: Vec<ToolManifest>,
        orchestrator: &CrossProtocolOrchestrator<'static>,
        options: &A2aEdgeConfig,
    ) -> Self {
        let definition = |server: &str, tool: &str| orchestrator.tool(server, tool);
        Self::with_definitions(manifests, &options.tags, &definition)
    }

    fn with_definitions(
        manifests: Vec<ToolManifest>,
        tags: &BTreeMap<String, Vec<String>>,
        definition: &dyn Fn(&str, &str) -> Option<Arc<ToolDefinition>>,
    ) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for tool in manifests.iter().flat_map(|manifest| &manifest.tools) {
            *counts.entry(&tool.name).or_default() += 1;
        }
        let mut skills: BTreeMap<String, Arc<Skill>> = BTreeMap::new();
        let mut ambiguous: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for manifest in &manifests {
            for tool in &manifest.tools {
                let qualified = counts.get(tool.name.as_str()).is_some_and(|count| *count > 1);
                // No client can call what the kernel does not understand.
                let Some(known) = definition(&manifest.server_id, &tool.name) else { continue };
                let Some(mut skill) = skill(&manifest.server_id, &known, tool, qualified) else {
                    continue;
                };
                number(&mut skill, &skills);
                skill.tags.extend(tags.get(&skill.id).into_iter().flatten().cloned());
                if qualified {
                    ambiguous.entry(tool.name.clone()).or_default().push(skill.id.clone());
                }
                skills.insert(skill.id.clone(), Arc::new(skill));
            }
        }
        ambiguous.values_mut().for_each(|ids| ids.sort());
        Self { manifests, skills, ambiguous }
    }

    pub(crate) fn manifests(&self) -> &[ToolManifest] {
        &self.manifests
    }

    /// Whether the kernel still knows every tool as it was.
    pub(crate) fn is_current(&self, orchestrator: &CrossProtocolOrchestrator<'static>) -> bool {
        self.skills.values().all(|skill| skill.is_current(orchestrator))
    }

    /// The skills that are shown, by id.
    pub(crate) fn skills(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.skills.values()
    }

    /// A skill that is shown.
    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Skill>> {
        self.skills.get(id)
    }

    /// The skill that is meant: the one named, or the only one.
    pub(crate) fn find(&self, named: Option<&str>) -> Result<&Arc<Skill>, Fault> {
        let Some(id) = named else {
            let mut all = self.skills.values();
            return match (all.next(), all.next()) {
                (Some(only), None) => Ok(only),
                _ => Err(Fault::params(
                    "expected `metadata.chio.targetSkillId` to name one of the agent's skills",
                )),
            };
        };
        if let Some(skill) = self.skills.get(id) {
            return Ok(skill);
        }
        match self.ambiguous.get(id) {
            Some(ids) => Err(Fault::params(format!(
                "several servers have this skill: expected one of {}",
                ids.join(", ")
            ))),
            None => Err(Fault::no_skill(id)),
        }
    }
}

/// A tool as a skill, in the words that may be shown; none when it cannot be shown honestly.
fn skill(
    server: &str,
    tool: &Arc<ToolDefinition>,
    shown: &ToolDefinition,
    qualified: bool,
) -> Option<Skill> {
    let target = target_protocol_of(tool).ok()?.unwrap_or(DiscoveryProtocol::Native);
    let facts = Facts::of(tool, true, AcpCategory::default());
    let fidelity = fidelity(Surface::A2a, &facts);
    if !fidelity.is_published() {
        return None;
    }
    let mut skill = Skill {
        id: tool.name.clone(),
        name: tool.name.clone(),
        description: shown.description.clone(),
        tags: Vec::new(),
        fidelity,
        server: server.to_owned(),
        tool: tool.name.clone(),
        argument_reader: ArgumentReader::from_schema(&tool.input_schema),
        definition: Arc::clone(tool),
    };
    if qualified {
        skill.id = format!("{server}::{}", tool.name);
        skill.name = format!("{} ({server})", tool.name);
        let _ = write!(skill.description, " [of server `{server}`: several have this name]");
        skill.tags.push("chio:collision-qualified".to_owned());
    }
    if target != DiscoveryProtocol::Native {
        skill.tags.push(format!("chio:target-protocol:{target}"));
    }
    Some(skill)
}

/// Gives a skill a number whose name is taken.
fn number(skill: &mut Skill, taken: &BTreeMap<String, Arc<Skill>>) {
    if !taken.contains_key(&skill.id) {
        return;
    }
    let free = (2_u64..).find(|number| !taken.contains_key(&format!("{}#{number}", skill.id)));
    let number = free.unwrap_or_default();
    let _ = write!(skill.id, "#{number}");
    let _ = write!(skill.name, " #{number}");
    let _ = write!(skill.description, " [number {number} of this name]");
    skill.tags.push("chio:ordinal-qualified".to_owned());
}

#[cfg(test)]
pub(crate) mod tests {
    use chio_core::crypto::Keypair;
    use chio_core::manifest::MANIFEST_SCHEMA;
    use serde_json::{Value, json};

    use super::{Arc, BTreeMap, BridgeFidelity, Catalog, Fault, ToolDefinition, ToolManifest};

    pub(crate) fn tool(name: &str, schema: Value, side_effects: bool) -> ToolDefinition {
        ToolDefinition {
            name: name.to_owned(),
            description: format!("Does {name}"),
            input_schema: serde_json::from_value(schema).unwrap(),
            output_schema: None,
            pricing: None,
            has_side_effects: side_effects,
            latency_hint: None,
        }
    }

    pub(crate) fn manifest(server: &str, tools: Vec<ToolDefinition>) -> ToolManifest {
        ToolManifest {
            schema: MANIFEST_SCHEMA.to_owned(),
            server_id: server.to_owned(),
            name: server.to_owned(),
            description: None,
            version: "1".to_owned(),
            tools,
            server_tools: Vec::new(),
            required_permissions: None,
            public_key: Keypair::from_seed(&[1; 32]).public_key().clone(),
        }
    }

    pub(crate) fn catalog(
        manifests: Vec<ToolManifest>,
        tags: &BTreeMap<String, Vec<String>>,
    ) -> Catalog {
        let tools = manifests.clone();
        let definition = |server: &str, name: &str| {
            let manifest = tools.iter().find(|manifest| manifest.server_id == server)?;
            let tool = manifest.tools.iter().find(|tool| tool.name == name)?;
            (name != "not understood").then(|| Arc::new(tool.clone()))
        };
        Catalog::with_definitions(manifests, tags, &definition)
    }

    fn plain(name: &str) -> ToolDefinition {
        tool(name, json!({}), false)
    }

    // covers: BRIDGE-066, BRIDGE-070, BRIDGE-071, BRIDGE-072, BRIDGE-076
    #[test]
    fn a_tool_is_a_skill_of_its_name_and_names_of_several_servers_are_qualified() {
        let manifests = vec![
            manifest("a", vec![plain("read"), plain("one"), plain("b::read")]),
            manifest("b", vec![plain("read")]),
        ];
        let catalog = catalog(manifests, &BTreeMap::new());
        let ids: Vec<&str> = catalog.skills().map(|skill| skill.id.as_str()).collect();
        assert_eq!(ids, ["a::read", "b::read", "b::read#2", "one"]);
        let one = catalog.find(Some("one")).unwrap();
        assert_eq!((&*one.name, &*one.description), ("one", "Does one"));
        assert!(one.tags.is_empty());
        let read = catalog.find(Some("a::read")).unwrap();
        assert_eq!((&*read.name, &*read.tool, &*read.server), ("read (a)", "read", "a"));
        assert_eq!(read.tags, ["chio:collision-qualified"]);
        let second = catalog.find(Some("b::read#2")).unwrap();
        assert_eq!(second.tags, ["chio:collision-qualified", "chio:ordinal-qualified"]);
        assert_eq!(second.name, "read (b) #2");
        let refused = catalog.find(Some("read")).unwrap_err().message;
        assert!(refused.ends_with("a::read, b::read#2"), "{refused}");
    }

    // covers: BRIDGE-078, BRIDGE-079, BRIDGE-080
    #[test]
    fn the_only_skill_need_not_be_named_and_one_of_several_must() {
        let one = catalog(vec![manifest("a", vec![plain("one")])], &BTreeMap::new());
        assert_eq!(one.find(None).unwrap().id, "one");
        assert_eq!(one.find(Some("other")).unwrap_err(), Fault::no_skill("other"));
        let two = manifest("a", vec![plain("one"), plain("two")]);
        let two = catalog(vec![two], &BTreeMap::new());
        assert!(two.find(None).is_err());
        assert!(catalog(Vec::new(), &BTreeMap::new()).find(None).is_err());
    }

    // covers: BRIDGE-013, BRIDGE-017, BRIDGE-075, BRIDGE-099, BRIDGE-101, BRIDGE-102
    // covers: BRIDGE-106, BRIDGE-107, BRIDGE-105
    #[test]
    fn what_cannot_be_shown_honestly_is_not_there() {
        let tools = vec![
            tool("approved", json!({"x-chio-approval-required": true}), false),
            tool("hidden", json!({"x-chio-publish": false}), false),
            tool("wrong", json!({"x-chio-target-protocol": "gopher"}), false),
            plain("not understood"),
            tool("projected", json!({"x-chio-target-protocol": "mcp"}), false),
            tool("writes", json!({}), true),
            tool("streams", json!({"x-chio-streaming": true}), false),
            tool("cancels", json!({"x-chio-cancellation": true}), false),
            tool("parts", json!({"x-chio-partial-output": true}), false),
            plain("plain"),
        ];
        let tags = BTreeMap::from([("plain".to_owned(), vec!["mine".to_owned()])]);
        let catalog = catalog(vec![manifest("a", tools)], &tags);
        for id in ["approved", "hidden", "wrong", "not understood"] {
            assert!(catalog.find(Some(id)).is_err(), "{id}");
        }
        for (id, lossless) in [
            ("plain", true),
            ("projected", true),
            ("writes", false),
            ("streams", false),
            ("cancels", false),
            ("parts", false),
        ] {
            let found = &catalog.find(Some(id)).unwrap().fidelity;
            assert_eq!(*found == BridgeFidelity::Lossless, lossless, "{id}");
        }
        assert_eq!(catalog.find(Some("projected")).unwrap().tags, ["chio:target-protocol:mcp"]);
        assert_eq!(catalog.find(Some("plain")).unwrap().tags, ["mine"]);
    }
}
