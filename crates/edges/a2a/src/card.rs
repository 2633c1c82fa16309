//! Agent cards: what the agent is, where it is reached and which skills it has.

use std::sync::Arc;

use chio_core::calendar::http_date;
use chio_core::hash::sha256_hex;
use serde_json::{Map, Value, json};
use url::form_urlencoded::byte_serialize;

use crate::catalog::{Catalog, Skill};
use crate::config::A2aEdgeConfig;

/// Names the extension in whose parameters a card tells how honestly it shows its skills.
const FIDELITY: &str = "urn:chio:a2a:bridge-fidelity:v1";

/// The scheme of bearer tokens.
const BEARER: &str = "bearer";

/// The header that a capability comes in.
const CAPABILITY: &str = "X-Chio-Capability";

/// Below which path the agent is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Mount {
    /// The agent as Chio's own documents describe it.
    Root,
    /// The agent as the schema of A2A wants it.
    Strict,
    /// One skill.
    Skill(String),
}

impl Mount {
    /// Where it is, below the agent's URL.
    fn path(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Strict => "/strict".to_owned(),
            Self::Skill(id) => {
                let id: String = byte_serialize(id.as_bytes()).collect();
                format!("/skills/{}", id.replace('+', "%20"))
            }
        }
    }
}

/// What clients need to authenticate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AuthRequirements {
    /// Whether every client needs a credential.
    pub(crate) required: bool,
    /// Whether a capability is taken as one.
    pub(crate) capabilities: bool,
}

/// A card as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    pub(crate) text: Arc<str>,
    /// Its entity tag, with its quotes.
    pub(crate) tag: String,
    /// Since when it is as it is, as HTTP writes dates.
    pub(crate) since: String,
}

impl Card {
    /// The card of a mount; none for a skill that is not there.
    pub(crate) fn new(
        mount: &Mount,
        options: &A2aEdgeConfig,
        catalog: &Catalog,
        auth: AuthRequirements,
        now: u64,
    ) -> Option<Self> {
        let url = format!("{}{}", options.url, mount.path());
        let card = match mount {
            Mount::Root => root(options, &url, catalog),
            Mount::Strict => {
                let skills: Vec<&Arc<Skill>> = catalog.skills().collect();
                strict(options, &url, &skills)
            }
            Mount::Skill(id) => strict(options, &url, &[catalog.get(id)?]),
        };
        let Value::Object(mut card) = card else { return None };
        if auth.required {
            card.extend(security(auth));
        }
        if *mount != Mount::Strict {
            for_old_clients(&mut card, &url);
        }
        let text = Value::Object(card).to_string();
        let tag = format!("\"{}\"", sha256_hex(text.as_bytes()));
        Some(Self { text: text.into(), tag, since: http_date(now) })
    }
}

/// Every binding that a mount has.
fn interfaces(options: &A2aEdgeConfig, url: &str) -> Vec<Value> {
    let interface = |url: &str, binding: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": "1.0"});
    let mut interfaces = vec![interface(url, "JSONRPC")];
    if options.http_json {
        interfaces.push(interface(&format!("{url}/rest"), "HTTP+JSON"));
    }
    interfaces
}

/// Adds what clients of 0.3 look for. They read only schemes of their own form, so each has both.
fn for_old_clients(card: &mut Map<String, Value>, url: &str) {
    for (name, value) in
        [("url", url), ("preferredTransport", "JSONRPC"), ("protocolVersion", "0.3.0")]
    {
        card.insert(name.to_owned(), json!(value));
    }
    let Some(Value::Object(schemes)) = card.get_mut("securitySchemes") else { return };
    for (name, scheme) in schemes.iter_mut() {
        let old = match name.as_str() {
            BEARER => json!({"type": "http", "scheme": "bearer"}),
            _ => json!({"type": "apiKey", "in": "header", "name": CAPABILITY}),
        };
        if let (Value::Object(scheme), Value::Object(old)) = (scheme, old) {
            scheme.extend(old);
        }
    }
    let any: Vec<Value> = schemes.keys().map(|name| json!({name: []})).collect();
    card.insert("security".to_owned(), Value::Array(any));
}

/// The card of Chio's own documents.
fn root(options: &A2aEdgeConfig, url: &str, catalog: &Catalog) -> Value {
    let skills: Vec<Value> = catalog
        .skills()
        .map(|skill| {
            json!({
                "id": skill.id,
                "name": skill.name,
                "description": skill.description,
                "tags": skill.tags,
                "inputModes": ["text"],
                "outputModes": ["text"],
                "bridgeFidelity": skill.fidelity,
            })
        })
        .collect();
    json!({
        "name": options.agent_name,
        "description": options.agent_description,
        "version": options.agent_version,
        "supportedInterfaces": interfaces(options, url),
        "capabilities": {
            "streaming": false,
            "pushNotifications": false,
            "stateTransitionHistory": false,
        },
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": skills,
    })
}

/// A card that has nothing which the schema of A2A does not know.
fn strict(options: &A2aEdgeConfig, url: &str, skills: &[&Arc<Skill>]) -> Value {
    let modes = json!(["text/plain", "text", "application/json"]);
    let entries: Vec<Value> = skills
        .iter()
        .map(|skill| {
            let tags =
                if skill.tags.is_empty() { vec!["chio".to_owned()] } else { skill.tags.clone() };
            json!({
                "id": skill.id,
                "name": skill.name,
                "description": said(&skill.description, &skill.name),
                "tags": tags,
                "inputModes": modes,
                "outputModes": modes,
            })
        })
        .collect();
    // A list, because names of skills are no names of members.
    let ratings: Vec<Value> =
        skills.iter().map(|skill| json!({"id": skill.id, "fidelity": skill.fidelity})).collect();
    json!({
        "name": options.agent_name,
        "description": said(&options.agent_description, &options.agent_name),
        "version": options.agent_version,
        "supportedInterfaces": interfaces(options, url),
        "capabilities": {
            "streaming": false,
            "pushNotifications": false,
            "extendedAgentCard": false,
            "extensions": [{
                "uri": FIDELITY,
                "description": "How honestly each skill shows the tool behind it",
                "required": false,
                "params": {"skills": ratings},
            }],
        },
        "defaultInputModes": modes,
        "defaultOutputModes": modes,
        "skills": entries,
    })
}

/// What clients need to authenticate, as A2A writes it: any one of the schemes will do.
fn security(auth: AuthRequirements) -> Map<String, Value> {
    let bearer = json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}});
    let mut schemes = Map::from_iter([(BEARER.to_owned(), bearer)]);
    if auth.capabilities {
        let header = json!({"location": "header", "name": CAPABILITY});
        schemes.insert("capability".to_owned(), json!({"apiKeySecurityScheme": header}));
    }
    let requirements: Vec<Value> =
        schemes.keys().map(|name| json!({"schemes": {name: {"list": []}}})).collect();
    Map::from_iter([
        ("securitySchemes".to_owned(), Value::Object(schemes)),
        ("securityRequirements".to_owned(), Value::Array(requirements)),
    ])
}

/// A text that must say something.
fn said<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.trim().is_empty() { otherwise } else { text }
}

#[cfg(test)]
mod tests;
