//! The manifest of an MCP server: what any of its children offers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chio_core::crypto::PublicKey;
use chio_core::fidelity::{check_approval_hint, target_protocol_of};
use chio_core::manifest::{ToolDefinition, ToolManifest};
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value, json};

/// The version of a server that does not say.
const NO_VERSION: &str = "0";
/// What a tool may say about itself, yes or no.
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// What all children of a server offer together.
pub(crate) struct Manifests {
    current: RwLock<Arc<ToolManifest>>,
    parts: Mutex<Parts>,
    /// What the log was told of the tools that were listed last: each child lists the same.
    told: Mutex<Vec<String>>,
}

/// Who offers what. Most children of a server offer the same, so each list is kept once.
#[derive(Default)]
struct Parts {
    lists: Vec<List>,
    clock: u64,
}

struct List {
    tools: Vec<ToolDefinition>,
    /// Whose list it is: sessions by their names, none for a child of no session.
    owners: HashSet<Option<String>>,
    /// When a child offered it last.
    seen: u64,
}

impl Manifests {
    pub(crate) fn new(server_id: &str, public_key: PublicKey) -> Self {
        let manifest =
            ToolManifest::unsigned(server_id, server_id, NO_VERSION, Vec::new(), public_key);
        Self {
            current: RwLock::new(Arc::new(manifest)),
            parts: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// What is new of the problems with the tools of a child.
    pub(crate) fn not_told(&self, problems: Vec<String>) -> Vec<String> {
        let mut told = self.told.lock();
        let new = problems.iter().filter(|it| !told.contains(it)).cloned().collect();
        *told = problems;
        new
    }

    /// What is offered now.
    pub(crate) fn current(&self) -> Arc<ToolManifest> {
        Arc::clone(&self.current.read())
    }

    /// Takes over what the server says about itself, as far as a manifest takes it.
    pub(crate) fn describe(&self, info: &Value) {
        let text = |name: &str| info.get(name).and_then(Value::as_str);
        self.change(|manifest| {
            let named = [text("title"), text("name")].into_iter().flatten();
            let mut named = named.filter(|name| is_named_well(manifest, name, NO_VERSION));
            if let Some(name) = named.next().map(str::to_owned) {
                manifest.name = name;
            }
            let version = text("version").filter(|it| is_named_well(manifest, &manifest.name, it));
            if let Some(version) = version.map(str::to_owned) {
                manifest.version = version;
            }
            manifest.description = text("description").map(str::to_owned);
        });
    }

    /// What a child offers now.
    pub(crate) fn set(&self, owner: Option<&str>, tools: Vec<ToolDefinition>) {
        let mut parts = self.parts.lock();
        parts.set(owner, tools);
        let tools = parts.union();
        self.change(|manifest| manifest.tools = tools);
    }

    /// A session is gone, and its child for good.
    pub(crate) fn remove(&self, session_id: &str) {
        let mut parts = self.parts.lock();
        parts.remove(Some(session_id));
        let tools = parts.union();
        self.change(|manifest| manifest.tools = tools);
    }

    /// Puts another manifest in place, if it is another: a holder of the old one can tell by that.
    fn change(&self, change: impl FnOnce(&mut ToolManifest)) {
        let mut current = self.current.write();
        let mut manifest = (**current).clone();
        change(&mut manifest);
        if manifest != **current {
            *current = Arc::new(manifest);
        }
    }
}

impl Parts {
    fn set(&mut self, owner: Option<&str>, tools: Vec<ToolDefinition>) {
        self.remove(owner);
        self.clock += 1;
        let owner = owner.map(str::to_owned);
        if let Some(list) = self.lists.iter_mut().find(|list| list.tools == tools) {
            list.owners.insert(owner);
            list.seen = self.clock;
            return;
        }
        let owners = HashSet::from([owner]);
        self.lists.push(List { tools, owners, seen: self.clock });
    }

    fn remove(&mut self, owner: Option<&str>) {
        let owner = owner.map(str::to_owned);
        for list in &mut self.lists {
            list.owners.remove(&owner);
        }
        self.lists.retain(|list| !list.owners.is_empty());
    }

    /// Each tool once, as it was offered last. What changes anything for one, does for all.
    fn union(&self) -> Vec<ToolDefinition> {
        let mut lists: Vec<&List> = self.lists.iter().collect();
        lists.sort_by_key(|list| list.seen);
        let mut tools: Vec<ToolDefinition> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for tool in lists.into_iter().flat_map(|list| &list.tools) {
            let place = *places.entry(&tool.name).or_insert(tools.len());
            match tools.get_mut(place) {
                Some(known) => {
                    let has_side_effects = known.has_side_effects || tool.has_side_effects;
                    *known = ToolDefinition { has_side_effects, ..tool.clone() };
                }
                None => tools.push(tool.clone()),
            }
        }
        tools
    }
}

/// The tools of a list that a manifest takes; of each other, why not.
pub(crate) fn tools(
    entries: &[Value],
    manifest: &ToolManifest,
) -> (Vec<ToolDefinition>, Vec<String>) {
    let mut alone = without_tools(manifest);
    let (mut tools, mut problems) = (Vec::new(), Vec::new());
    let mut names = HashSet::new();
    for (entry, number) in entries.iter().zip(1..) {
        let tool = definition(entry).and_then(|tool| {
            if !names.insert(tool.name.clone()) {
                return Err("expected each tool name once, found it twice".to_owned());
            }
            fitting(tool, &mut alone)
        });
        match tool {
            Ok(tool) => tools.push(tool),
            Err(problem) => problems.push(format!("tool {number} is left out: {problem}")),
        }
    }
    (tools, problems)
}

fn without_tools(manifest: &ToolManifest) -> ToolManifest {
    let ToolManifest { server_id, name, version, public_key, .. } = manifest;
    ToolManifest::unsigned(server_id, name, version, Vec::new(), public_key.clone())
}

/// A tool that a manifest takes and the kernel understands.
fn fitting(tool: ToolDefinition, alone: &mut ToolManifest) -> Result<ToolDefinition, String> {
    target_protocol_of(&tool).map_err(|error| error.to_string())?;
    check_approval_hint(&tool)?;
    alone.tools = vec![tool];
    alone.check().map_err(|error| error.to_string())?;
    alone.tools.pop().ok_or_else(String::new)
}

/// Whether a server may be called so.
fn is_named_well(manifest: &ToolManifest, name: &str, version: &str) -> bool {
    let mut alone = without_tools(manifest);
    name.clone_into(&mut alone.name);
    version.clone_into(&mut alone.version);
    let tool = definition(&json!({"name": "any"}));
    tool.is_ok_and(|tool| fitting(tool, &mut alone).is_ok())
}

/// A tool as a manifest has it.
fn definition(entry: &Value) -> Result<ToolDefinition, String> {
    let name = entry.get("name").and_then(Value::as_str).ok_or("expected a name, found none")?;
    Ok(ToolDefinition {
        name: name.to_owned(),
        description: description(entry),
        input_schema: schema(entry, "inputSchema")?.unwrap_or_default(),
        output_schema: schema(entry, "outputSchema")?,
        pricing: None,
        has_side_effects: has_side_effects(entry.get("annotations")),
        latency_hint: None,
    })
}

fn schema(entry: &Value, name: &str) -> Result<Option<Map<String, Value>>, String> {
    match entry.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(schema)) => Ok(Some(schema.clone())),
        Some(_) => Err(format!("expected an object as `{name}`")),
    }
}

/// The title, an empty line, and the text.
fn description(entry: &Value) -> String {
    let text = |value: Option<&Value>| {
        value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let annotated = entry.get("annotations").and_then(|annotations| annotations.get("title"));
    let title = text(entry.get("title")).or_else(|| text(annotated));
    match (title, text(entry.get("description"))) {
        (Some(title), Some(words)) => format!("{title}\n\n{words}"),
        (one, other) => one.or(other).unwrap_or_default(),
    }
}

/// Whether a tool changes anything: yes, unless it says clearly that it does not.
fn has_side_effects(annotations: Option<&Value>) -> bool {
    let Some(Value::Object(annotations)) = annotations else { return true };
    let hint = |name: &str| annotations.get(name).map(Value::as_bool);
    // SECURITY: who cannot write one hint is not believed in another.
    if HINTS.iter().any(|name| hint(name) == Some(None)) {
        return true;
    }
    hint("readOnlyHint") != Some(Some(true)) || hint("destructiveHint") == Some(Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifests() -> Manifests {
        let key = chio_core::crypto::Keypair::from_seed(&[7; 32]);
        Manifests::new("srv", key.public_key().clone())
    }

    fn tool(name: &str, schema: &Value, reads: bool) -> ToolDefinition {
        let hints = json!({"readOnlyHint": reads});
        definition(&json!({"name": name, "inputSchema": schema, "annotations": hints})).unwrap()
    }

    fn names(manifests: &Manifests) -> Vec<String> {
        manifests.current().tools.iter().map(|tool| tool.name.clone()).collect()
    }

    #[test]
    fn only_a_clear_word_says_that_a_tool_changes_nothing() {
        for (annotations, expected) in [
            (json!({"readOnlyHint": true}), false),
            (json!({"readOnlyHint": true, "destructiveHint": false, "title": "x"}), false),
            (json!({"readOnlyHint": true, "destructiveHint": true}), true),
            (json!({"readOnlyHint": false}), true),
            (json!({}), true),
            (json!(null), true),
            (json!("readOnlyHint"), true),
            (json!({"readOnlyHint": "true"}), true),
            (json!({"readOnlyHint": true, "destructiveHint": 0}), true),
            (json!({"readOnlyHint": true, "openWorldHint": "no"}), true),
            (json!({"destructiveHint": false, "idempotentHint": true}), true),
        ] {
            assert_eq!(has_side_effects(Some(&annotations)), expected, "{annotations}");
        }
        assert!(has_side_effects(None));
    }

    #[test]
    fn the_title_stands_above_the_text() {
        for (entry, expected) in [
            (json!({"title": "T", "description": "Text"}), "T\n\nText"),
            (json!({"annotations": {"title": "A"}, "description": "Text"}), "A\n\nText"),
            (json!({"title": "T", "annotations": {"title": "A"}}), "T"),
            (json!({"description": "Text"}), "Text"),
            (json!({}), ""),
        ] {
            assert_eq!(description(&entry), expected, "{entry}");
        }
    }

    #[test]
    fn schemas_stay_as_they_are() {
        let schema = json!({"type": "object", "$defs": {"a": {"const": 1}}, "x-chio-foo": [1]});
        let entry = json!({"name": "t", "inputSchema": schema, "outputSchema": schema});
        let tool = definition(&entry).unwrap();
        assert_eq!(Value::Object(tool.input_schema), schema);
        assert_eq!(tool.output_schema.map(Value::Object), Some(schema));
    }

    #[test]
    fn tools_that_a_manifest_does_not_take_are_left_out() {
        let entries = [
            json!({"name": "good", "inputSchema": {"x-chio-approval-required": true}}),
            json!({"name": ""}),
            json!({"name": " blank "}),
            json!({"name": "line\nbreak"}),
            json!({"description": "nameless"}),
            json!("no object"),
            json!({"name": "bad schema", "inputSchema": []}),
            json!({"name": "bad output", "outputSchema": 1}),
            json!({"name": "bad hint", "inputSchema": {"x-chio-approval-required": "yes"}}),
            json!({"name": "bad target", "inputSchema": {"x-chio-target-protocol": "smtp"}}),
            json!({"name": "good"}),
            json!({"name": "last"}),
        ];
        let (tools, problems) = tools(&entries, &manifests().current());
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["good", "last"]);
        assert_eq!(problems.len(), 10, "{problems:?}");
    }

    #[test]
    fn the_manifest_is_what_all_children_offer() {
        let manifests = manifests();
        let (old, new) = (json!({"v": 1}), json!({"v": 2}));
        manifests.set(None, vec![tool("a", &old, true), tool("b", &old, true)]);
        manifests.set(Some("s1"), vec![tool("a", &new, false), tool("c", &old, true)]);
        assert_eq!(names(&manifests), ["a", "b", "c"]);
        let first = &manifests.current().tools[0];
        assert_eq!(Value::Object(first.input_schema.clone()), new, "as it was offered last");
        assert!(first.has_side_effects, "one says so");
        manifests.set(None, vec![tool("a", &old, true)]);
        assert_eq!(names(&manifests), ["a", "c"]);
        let first = &manifests.current().tools[0];
        assert_eq!(Value::Object(first.input_schema.clone()), old);
        assert!(first.has_side_effects, "one still says so");
        manifests.remove("s1");
        assert_eq!(names(&manifests), ["a"]);
        assert!(!manifests.current().tools[0].has_side_effects);
    }

    #[test]
    fn a_manifest_that_did_not_change_is_the_same() {
        let manifests = manifests();
        manifests.set(None, vec![tool("a", &json!({}), true)]);
        let before = manifests.current();
        manifests.set(Some("s1"), vec![tool("a", &json!({}), true)]);
        manifests.remove("s1");
        assert!(Arc::ptr_eq(&before, &manifests.current()));
        manifests.set(None, Vec::new());
        assert!(!Arc::ptr_eq(&before, &manifests.current()));
    }

    #[test]
    fn children_that_offer_the_same_share_a_list() {
        let manifests = manifests();
        for session in ["s1", "s2", "s3"] {
            manifests.set(Some(session), vec![tool("a", &json!({}), true)]);
        }
        assert_eq!(manifests.parts.lock().lists.len(), 1);
    }

    #[test]
    fn a_server_is_called_as_it_says_if_that_is_a_name() {
        let manifests = manifests();
        let names = |manifests: &Manifests| {
            let manifest = manifests.current();
            (manifest.name.clone(), manifest.version.clone())
        };
        manifests.describe(&json!({"name": " ", "version": "1\n"}));
        assert_eq!(names(&manifests), ("srv".to_owned(), "0".to_owned()));
        manifests.describe(&json!({"name": "n", "title": "Title", "version": "2.1"}));
        assert_eq!(names(&manifests), ("Title".to_owned(), "2.1".to_owned()));
        manifests.describe(&json!(null));
        assert_eq!(names(&manifests), ("Title".to_owned(), "2.1".to_owned()));
    }
}
