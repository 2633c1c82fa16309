//! Messages and their parts, as every dialect decodes and encodes them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::modes::AcceptedModes;

/// The longest name of a message or a context that is taken, in bytes: receipts repeat it.
pub(crate) const MAX_NAME: usize = 256;

/// What a part is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Content {
    /// Text.
    Text(String),
    /// Bytes, in standard base64.
    Raw(String),
    /// A place.
    Url(String),
    /// JSON.
    Data(Value),
}

/// Who is shown a part of a result. Chio's own dialect knows only texts and data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Shown {
    /// Every client.
    #[default]
    Everywhere,
    /// Clients that speak Chio's own dialect.
    InSeed,
    /// Clients that speak A2A.
    InA2a,
}

impl Shown {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    const fn is_everywhere(&self) -> bool {
        matches!(self, Self::Everywhere)
    }
}

/// A part of a message or of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) content: Content,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) filename: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Shown::is_everywhere")]
    pub(crate) shown: Shown,
}

impl Part {
    pub(crate) const fn new(content: Content) -> Self {
        Self { content, media_type: None, filename: None, metadata: None, shown: Shown::Everywhere }
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::new(Content::Text(text.into()))
    }

    pub(crate) const fn is_file(&self) -> bool {
        matches!(self.content, Content::Raw(_) | Content::Url(_))
    }

    pub(crate) const fn as_text(&self) -> Option<&String> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let content = match &self.content {
            Content::Text(text) | Content::Raw(text) | Content::Url(text) => text.len(),
            Content::Data(value) => size_of_value(value),
        };
        let names = [&self.media_type, &self.filename].into_iter().flatten();
        let metadata = self.metadata.as_ref().map_or(0, size_of_members);
        64 + content + metadata + names.map(String::len).sum::<usize>()
    }
}

/// The texts among parts, one below the other.
pub(crate) fn texts(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).map(String::as_str).collect();
    texts.join("\n")
}

/// Who says something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    #[default]
    User,
    Agent,
}

/// A message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Message {
    /// The sender's name of it; Chio's own dialect has none.
    pub(crate) id: Option<String>,
    pub(crate) role: Role,
    pub(crate) parts: Vec<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task_id: Option<String>,
    /// SECURITY: it may hold a capability, which is written nowhere.
    #[serde(skip)]
    pub(crate) metadata: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) extensions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) reference_task_ids: Vec<String>,
}

impl Message {
    pub(crate) fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts, ..Self::default() }
    }

    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let names = self.extensions.iter().chain(&self.reference_task_ids).map(String::len);
        let metadata = self.metadata.as_ref().map_or(0, size_of_members);
        256 + metadata + names.sum::<usize>() + self.parts.iter().map(Part::size).sum::<usize>()
    }
}

/// About how many bytes a value takes in memory. Its depth was bounded when it was read.
fn size_of_value(value: &Value) -> usize {
    32 + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size_of_value).sum(),
        Value::Object(members) => size_of_members(members),
    }
}

fn size_of_members(members: &Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| 48 + name.len() + size_of_value(value)).sum()
}

/// A request to do something, decoded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SendRequest {
    pub(crate) message: Message,
    /// The metadata of the params.
    pub(crate) metadata: Option<Map<String, Value>>,
    /// Whether to answer at once, with a task that runs when it is asked for.
    pub(crate) at_once: bool,
    /// How many messages of the history are wanted; all when absent.
    pub(crate) history: Option<usize>,
    /// What the client takes of a result.
    pub(crate) accepted: AcceptedModes,
}

/// A task that is asked for, decoded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskRef {
    pub(crate) id: String,
    pub(crate) metadata: Option<Map<String, Value>>,
    pub(crate) history: Option<usize>,
}
