//! What an agent offers, as a manifest: a tool for each skill that takes text or JSON.

use chio_core::crypto::PublicKey;
use chio_core::manifest::{LatencyHint, ToolDefinition, ToolManifest};
use serde_json::{Map, Value, json};

use crate::card::{Accepts, Capabilities, Card, Skill};
use crate::error::AgentError;
use crate::interface::{Dialect, Interface};

/// The most characters of what a card says about anything, in a manifest.
const MAX_WORDS: usize = 4000;

/// What an agent can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abilities {
    pub(crate) streaming: bool,
    pub(crate) push: bool,
    pub(crate) history: bool,
}

impl Abilities {
    /// As the card says, or the operator instead.
    pub(crate) fn of(card: &Card, interface: &Interface, history_for_1_0: bool) -> Self {
        let Capabilities { streaming, push_notifications, state_transition_history } =
            card.capabilities;
        let lifted = history_for_1_0 && interface.dialect == Dialect::V1;
        Self { streaming, push: push_notifications, history: state_transition_history || lifted }
    }
}

/// The manifest of an agent, under the name, the version and the key that the card does not say.
///
/// # Errors
/// When no skill takes anything that can be sent, or a skill cannot be named.
pub(crate) fn manifest(
    card: &Card,
    interface: &Interface,
    abilities: Abilities,
    (server_id, version, public_key): (String, &str, PublicKey),
) -> Result<ToolManifest, AgentError> {
    let fitting = card.skills.iter().map(|skill| (skill, skill.accepts(card)));
    let fitting = fitting.filter(|(_, accepts)| accepts.any());
    let tools: Vec<_> =
        fitting.map(|(skill, accepts)| definition(skill, accepts, abilities)).collect();
    if tools.is_empty() {
        return Err(AgentError::NoProjectableSkills(format!(
            "expected text or JSON among the input modes of a skill of `{}`, found neither",
            cut(&card.name)
        )));
    }
    let note = format!(
        "A2A over {}; calls name their skill in `metadata.chio.targetSkillId`, which A2A itself \
         does not define.",
        interface.binding.into_str()
    );
    let name = format!("{} (A2A)", cut(&card.name));
    let manifest = ToolManifest {
        description: Some(join([cut(&card.description), note])),
        ..ToolManifest::unsigned(server_id, name, version, tools, public_key)
    };
    let wrong = |error| AgentError::Protocol(format!("the agent card makes no manifest: {error}"));
    manifest.check().map_err(wrong)?;
    Ok(manifest)
}

fn definition(skill: &Skill, accepts: Accepts, abilities: Abilities) -> ToolDefinition {
    let tags = (!skill.tags.is_empty()).then(|| format!("Tags: {}.", skill.tags.join(", ")));
    let examples =
        (!skill.examples.is_empty()).then(|| format!("Examples: {}", skill.examples.join(" | ")));
    let parts = [cut(&skill.description), cut(&tags.unwrap_or_default())];
    ToolDefinition {
        name: skill.id.clone(),
        description: join([join(parts), cut(&examples.unwrap_or_default())]),
        input_schema: input_schema(accepts, abilities),
        output_schema: None,
        pricing: None,
        has_side_effects: true,
        latency_hint: Some(LatencyHint::Moderate),
    }
}

fn cut(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c });
    let plain: String = plain.take(MAX_WORDS).collect();
    plain.trim().to_owned()
}

fn join<const N: usize>(parts: [String; N]) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// Members of an object schema, which has no others.
fn closed(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

fn input_schema(accepts: Accepts, abilities: Abilities) -> Map<String, Value> {
    let (mut properties, mut sent) = (Map::new(), Vec::new());
    let mut add = |name: &str, schema: Value| properties.insert(name.to_owned(), schema);
    if accepts.text {
        add("message", json!({"type": "string", "description": "Text to send."}));
        sent.push("message");
    }
    if accepts.json {
        add("data", json!({"description": "JSON to send."}));
        sent.push("data");
    }
    let text = || json!({"type": "string", "minLength": 1});
    let free = || json!({"type": "object"});
    let count = || json!({"type": "integer", "minimum": 0, "maximum": u32::MAX});
    add("context_id", text());
    add("task_id", text());
    add("reference_task_ids", json!({"type": "array", "items": text()}));
    add("metadata", free());
    add("message_metadata", free());
    add("return_immediately", json!({"type": "boolean"}));
    if abilities.history {
        add("history_length", count());
    }
    if abilities.streaming {
        add("stream", json!({"type": "boolean"}));
    }
    let mut modes = Vec::new();
    for (name, schema) in modes_of(abilities, &text, &free, &count) {
        add(name, schema);
        modes.push(name);
    }
    let mut ways: Vec<Value> = modes.iter().map(|mode| json!({"required": [mode]})).collect();
    let sends: Vec<Value> = sent.iter().map(|field| json!({"required": [field]})).collect();
    ways.push(json!({"anyOf": sends}));
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("oneOf".to_owned(), Value::Array(ways));
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema.insert("x-chio-streaming".to_owned(), json!(abilities.streaming));
    schema
}

/// The modes in which a tool manages tasks instead of sending anything.
fn modes_of(
    abilities: Abilities,
    text: &dyn Fn() -> Value,
    free: &dyn Fn() -> Value,
    count: &dyn Fn() -> Value,
) -> Vec<(&'static str, Value)> {
    let get = json!({"id": text(), "history_length": count()});
    let cancel = json!({"id": text(), "metadata": free()});
    let mut modes =
        vec![("get_task", closed(&get, &["id"])), ("cancel_task", closed(&cancel, &["id"]))];
    if abilities.streaming {
        modes.push(("subscribe_task", closed(&json!({"id": text()}), &["id"])));
    }
    if abilities.push {
        let authentication = json!({"scheme": text(), "credentials": text()});
        let create = json!({
            "task_id": text(), "url": text(), "id": text(), "token": text(),
            "authentication": closed(&authentication, &["scheme"]),
        });
        let one = json!({"task_id": text(), "id": text()});
        let list = json!({"task_id": text(), "page_size": count(), "page_token": text()});
        modes.extend([
            ("create_push_notification_config", closed(&create, &["task_id", "url"])),
            ("get_push_notification_config", closed(&one, &["task_id", "id"])),
            ("list_push_notification_configs", closed(&list, &["task_id"])),
            ("delete_push_notification_config", closed(&one, &["task_id", "id"])),
        ]);
    }
    modes
}
