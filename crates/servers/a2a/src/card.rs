//! An agent's card, of A2A 1.0 or 0.3: the parts that count here.

pub(crate) mod security;

use std::collections::BTreeMap;

use chio_core::strict;
use chio_core::text::{is_sound, printable};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::AgentError;
use security::{Requirements, Scheme};

/// The most skills that a card may have.
const MAX_SKILLS: usize = 1000;

/// The most characters of a name that an error repeats.
const MAX_SHOWN: usize = 200;

/// The parts of a card that count.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    pub(crate) name: String,
    pub(crate) description: String,
    /// As the card lists them, of 1.0 first.
    pub(crate) interfaces: Vec<Offered>,
    pub(crate) capabilities: Capabilities,
    input_modes: Vec<String>,
    output_modes: Vec<String>,
    pub(crate) skills: Vec<Skill>,
    pub(crate) schemes: BTreeMap<String, Scheme>,
    /// What every call needs; none when the card does not say.
    pub(crate) requirements: Option<Requirements>,
}

/// An interface as a card offers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offered {
    pub(crate) url: String,
    pub(crate) binding: String,
    pub(crate) version: String,
    pub(crate) tenant: Option<String>,
}

/// What an agent can do besides answering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Capabilities {
    #[serde(deserialize_with = "or_default")]
    pub(crate) streaming: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) push_notifications: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) state_transition_history: bool,
}

/// A skill.
#[derive(Debug, Clone)]
pub(crate) struct Skill {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) tags: Vec<String>,
    pub(crate) examples: Vec<String>,
    input_modes: Vec<String>,
    output_modes: Vec<String>,
    /// What its calls need instead of what the card says for all.
    pub(crate) requirements: Option<Requirements>,
}

/// What a skill takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepts {
    pub(crate) text: bool,
    pub(crate) json: bool,
}

impl Accepts {
    /// Whether it takes anything that can be sent from here.
    pub(crate) const fn any(self) -> bool {
        self.text || self.json
    }
}

impl Skill {
    /// What it takes.
    pub(crate) fn accepts(&self, card: &Card) -> Accepts {
        let modes = if self.input_modes.is_empty() { &card.input_modes } else { &self.input_modes };
        if modes.is_empty() {
            return Accepts { text: true, json: true };
        }
        let essence =
            |mode: &String| mode.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let has = |names: [&str; 2]| modes.iter().any(|mode| names.contains(&&*essence(mode)));
        Accepts { text: has(["text", "text/plain"]), json: has(["json", "application/json"]) }
    }

    /// What it may answer with.
    pub(crate) fn output_modes<'a>(&'a self, card: &'a Card) -> &'a [String] {
        if self.output_modes.is_empty() { &card.output_modes } else { &self.output_modes }
    }
}

/// A member that is null is as good as absent.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

// A member that is null is as good as absent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCard {
    name: String,
    description: Option<String>,
    supported_interfaces: Option<Vec<RawInterface>>,
    url: Option<String>,
    preferred_transport: Option<String>,
    protocol_version: Option<String>,
    additional_interfaces: Option<Vec<RawInterface>>,
    capabilities: Option<RawCapabilities>,
    default_input_modes: Option<Vec<String>>,
    default_output_modes: Option<Vec<String>>,
    skills: Option<Vec<Value>>,
    security_schemes: Option<Map<String, Value>>,
    security_requirements: Option<Value>,
    security: Option<Value>,
}

#[derive(Deserialize)]
struct RawCapabilities {
    #[serde(flatten)]
    known: Capabilities,
    extensions: Option<Vec<RawExtension>>,
}

#[derive(Deserialize)]
struct RawExtension {
    uri: Option<String>,
    required: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawInterface {
    url: Option<String>,
    #[serde(alias = "transport")]
    protocol_binding: Option<String>,
    protocol_version: Option<String>,
    tenant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSkill {
    id: String,
    name: Option<String>,
    description: Option<String>,
    tags: Option<Vec<String>>,
    examples: Option<Vec<String>>,
    input_modes: Option<Vec<String>>,
    output_modes: Option<Vec<String>>,
    security_requirements: Option<Value>,
    security: Option<Value>,
}

impl Card {
    /// Reads a card.
    ///
    /// # Errors
    /// When it is none, or has no skills.
    pub(crate) fn read(text: &[u8]) -> Result<Self, AgentError> {
        let wrong = |error: strict::StrictError| {
            AgentError::Protocol(format!("the agent card cannot be read: {error}"))
        };
        let raw: RawCard = strict::object_from_slice(text).map_err(wrong)?;
        if raw.name.trim().is_empty() {
            return Err(AgentError::Protocol("expected `name` in the agent card".to_owned()));
        }
        let interfaces = interfaces(&raw);
        let skills = raw.skills.unwrap_or_default();
        if skills.is_empty() || skills.len() > MAX_SKILLS {
            let found = skills.len();
            let problem = format!(
                "expected 1 to {MAX_SKILLS} skills in the card of `{}`, found {found}",
                raw.name.trim()
            );
            return Err(AgentError::NoSkills(problem));
        }
        let skills = skills.into_iter().zip(1..);
        let skills = skills.map(|(skill, number)| Skill::read(skill, number));
        let skills = skills.collect::<Result<_, _>>()?;
        let requirements = raw.security_requirements.or(raw.security);
        let capabilities = raw.capabilities.map(capabilities).transpose()?;
        Ok(Self {
            name: raw.name.trim().to_owned(),
            description: raw.description.unwrap_or_default(),
            interfaces,
            capabilities: capabilities.unwrap_or_default(),
            input_modes: raw.default_input_modes.unwrap_or_default(),
            output_modes: raw.default_output_modes.unwrap_or_default(),
            skills,
            schemes: raw
                .security_schemes
                .unwrap_or_default()
                .into_iter()
                .map(|(name, scheme)| (name, Scheme::read(&scheme)))
                .collect(),
            requirements: security::requirements("the card", requirements)?,
        })
    }
}

/// What an agent can do, unless it asks of its clients what is not known here.
fn capabilities(raw: RawCapabilities) -> Result<Capabilities, AgentError> {
    let mut extensions = raw.extensions.unwrap_or_default().into_iter();
    match extensions.find(|extension| extension.required == Some(true)) {
        None => Ok(raw.known),
        Some(extension) => {
            let uri = printable(extension.uri.as_deref().unwrap_or_default(), MAX_SHOWN);
            let problem = format!("expected no extension to be required, found `{uri}`");
            Err(AgentError::Protocol(problem))
        }
    }
}

/// Every interface that a card offers, however its version says so.
fn interfaces(raw: &RawCard) -> Vec<Offered> {
    let given = |text: &Option<String>| {
        text.as_ref().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let mut offered = Vec::new();
    for interface in raw.supported_interfaces.iter().flatten() {
        offered.push(Offered {
            url: interface.url.clone().unwrap_or_default(),
            binding: interface.protocol_binding.clone().unwrap_or_default(),
            // Cards have had this list only since 1.0.
            version: given(&interface.protocol_version).unwrap_or_else(|| "1.0".to_owned()),
            tenant: given(&interface.tenant),
        });
    }
    if let Some(url) = given(&raw.url) {
        let version = given(&raw.protocol_version).unwrap_or_else(|| "0.3.0".to_owned());
        let binding = given(&raw.preferred_transport).unwrap_or_else(|| "JSONRPC".to_owned());
        offered.push(Offered { url, binding, version: version.clone(), tenant: None });
        for other in raw.additional_interfaces.iter().flatten() {
            let (url, binding) = (other.url.clone(), other.protocol_binding.clone());
            let (url, binding) = (url.unwrap_or_default(), binding.unwrap_or_default());
            offered.push(Offered { url, binding, version: version.clone(), tenant: None });
        }
    }
    offered
}

impl Skill {
    /// Reads a skill, the one of this number in its card.
    fn read(raw: Value, number: usize) -> Result<Self, AgentError> {
        let id = raw.get("id").and_then(Value::as_str).unwrap_or_default();
        let short = printable(id, 100);
        let which = format!("skill {number} of the card, `{short}`");
        let raw: RawSkill = strict::from_value(raw)
            .map_err(|error| AgentError::Protocol(format!("{which}: {error}")))?;
        if !is_sound(&raw.id) {
            let expected = "expected an `id` without control characters and blanks around it";
            return Err(AgentError::Protocol(format!("{which}: {expected}")));
        }
        let requirements = raw.security_requirements.or(raw.security);
        let name = raw.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let name = name.unwrap_or(&raw.id);
        Ok(Self {
            requirements: security::requirements(&format!("skill `{}`", raw.id), requirements)?,
            name: name.to_owned(),
            id: raw.id,
            description: raw.description.unwrap_or_default(),
            tags: raw.tags.unwrap_or_default(),
            examples: raw.examples.unwrap_or_default(),
            input_modes: raw.input_modes.unwrap_or_default(),
            output_modes: raw.output_modes.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests;
