//! Tasks and messages as A2A 1.0 writes them: borrowed, and serialized straight into the response.

use std::borrow::Cow;

use chio_core::calendar::rfc3339_millis;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::call_report::InA2a;
use crate::message::{self, Content, Role, Shown};
use crate::record::TaskRecord;

/// The only artifact of a task.
const ARTIFACT: &str = "result";

/// A `SendMessageResponse`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Sent<'a> {
    Task(Task<'a>),
    /// When the tool wants a message as response.
    Message(Message<'a>),
}

impl<'a> Sent<'a> {
    pub(crate) fn new(record: &'a TaskRecord, history: Option<usize>) -> Self {
        if !record.replies {
            return Self::Task(Task::new(record, history, true));
        }
        let reply = Message::from_agent(record, "reply", &record.output);
        Self::Message(Message { task_id: None, metadata: Some(record.report.in_a2a()), ..reply })
    }
}

/// A `Task`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<&'a str>,
    status: Status<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<[Artifact<'a>; 1]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    history: Vec<Message<'a>>,
    metadata: InA2a<'a>,
}

impl<'a> Task<'a> {
    /// A task with its newest messages, at most `history`, and its result if `artifacts`.
    pub(crate) fn new(record: &'a TaskRecord, history: Option<usize>, artifacts: bool) -> Self {
        let output = Parts(&record.output);
        let artifact = Artifact { artifact_id: ARTIFACT, name: &record.skill, parts: output };
        let history = record.newest(history).iter();
        Self {
            id: &record.id,
            context_id: record.context_id.as_deref(),
            status: Status::new(record),
            artifacts: (artifacts && !output.is_empty()).then_some([artifact]),
            history: history.map(|message| Message::new(message, record)).collect(),
            metadata: record.report.in_a2a(),
        }
    }
}

#[derive(Serialize)]
struct Status<'a> {
    state: &'static str,
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message<'a>>,
}

impl<'a> Status<'a> {
    fn new(record: &'a TaskRecord) -> Self {
        let has_words = !Parts(&record.words).is_empty();
        Self {
            state: record.state.into_str(),
            timestamp: rfc3339_millis(record.updated_at),
            message: has_words.then(|| Message::from_agent(record, "status", &record.words)),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact<'a> {
    artifact_id: &'static str,
    name: &'a str,
    parts: Parts<'a>,
}

/// A `Message`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message<'a> {
    message_id: Cow<'a, str>,
    role: &'static str,
    parts: Parts<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    extensions: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    reference_task_ids: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<InA2a<'a>>,
}

impl<'a> Message<'a> {
    /// A message of the agent about a task.
    fn from_agent(record: &'a TaskRecord, suffix: &str, parts: &'a [message::Part]) -> Self {
        Self {
            message_id: format!("{}-{suffix}", record.id).into(),
            role: name(Role::Agent),
            parts: Parts(parts),
            task_id: Some(&record.id),
            context_id: record.context_id.as_deref(),
            extensions: &[],
            reference_task_ids: &[],
            metadata: None,
        }
    }

    /// A message of a task's history.
    fn new(message: &'a message::Message, record: &'a TaskRecord) -> Self {
        let id = message.id.as_deref().map(Cow::Borrowed);
        Self {
            message_id: id.unwrap_or_else(|| format!("{}-message", record.id).into()),
            role: name(message.role),
            parts: Parts(&message.parts),
            task_id: Some(&record.id),
            context_id: record.context_id.as_deref(),
            extensions: &message.extensions,
            reference_task_ids: &message.reference_task_ids,
            metadata: None,
        }
    }
}

const fn name(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

/// The parts that are shown in A2A.
#[derive(Clone, Copy)]
struct Parts<'a>(&'a [message::Part]);

impl<'a> Parts<'a> {
    fn shown(self) -> impl Iterator<Item = Part<'a>> {
        self.0.iter().filter(|part| part.shown != Shown::InSeed).map(Part::new)
    }

    fn is_empty(self) -> bool {
        self.shown().next().is_none()
    }
}

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.shown())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(flatten)]
    content: PartContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Map<String, Value>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum PartContent<'a> {
    Text(&'a str),
    Raw(&'a str),
    Url(&'a str),
    Data(&'a Value),
}

impl<'a> Part<'a> {
    fn new(part: &'a message::Part) -> Self {
        Self {
            content: match &part.content {
                Content::Text(text) => PartContent::Text(text),
                Content::Raw(bytes) => PartContent::Raw(bytes),
                Content::Url(url) => PartContent::Url(url),
                Content::Data(data) => PartContent::Data(data),
            },
            media_type: part.media_type.as_deref(),
            filename: part.filename.as_deref(),
            metadata: part.metadata.as_ref(),
        }
    }
}

/// A part as 1.0 writes it.
pub(crate) fn write_part(part: &message::Part) -> Value {
    serde_json::to_value(Part::new(part)).unwrap_or_default()
}
