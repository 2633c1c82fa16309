//! A tool's arguments: what is asked of the agent.

use chio_core::strict;
use chio_core::text::is_sound;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::card::Accepts;
use crate::error::AgentError;
use crate::manifest::Abilities;
use crate::place::check_callback;

/// The longest id that is sent or remembered.
pub(crate) const MAX_ID: usize = 1024;

/// What is asked of an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operation {
    Send(Box<SendRequest>),
    Get { id: String, history_length: Option<u32> },
    Subscribe { id: String },
    Cancel { id: String, metadata: Option<Map<String, Value>> },
    CreatePush(Box<CreatePush>),
    GetPush(OnePush),
    ListPush(ListPush),
    DeletePush(OnePush),
}

/// A message to send.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SendRequest {
    pub(crate) text: Option<String>,
    pub(crate) data: Option<Value>,
    pub(crate) context_id: Option<String>,
    pub(crate) task_id: Option<String>,
    pub(crate) reference_task_ids: Vec<String>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) message_metadata: Option<Map<String, Value>>,
    pub(crate) history_length: Option<u32>,
    pub(crate) return_immediately: Option<bool>,
    pub(crate) stream: bool,
}

/// Where to send notifications of a task.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreatePush {
    #[serde(alias = "taskId")]
    pub(crate) task_id: String,
    pub(crate) url: String,
    pub(crate) id: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) authentication: Option<PushAuthentication>,
}

/// How the agent shows who it is when it notifies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PushAuthentication {
    pub(crate) scheme: String,
    pub(crate) credentials: Option<String>,
}

/// One config of a task.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnePush {
    #[serde(alias = "taskId")]
    pub(crate) task_id: String,
    pub(crate) id: String,
}

/// The configs of a task.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListPush {
    #[serde(alias = "taskId")]
    pub(crate) task_id: String,
    #[serde(alias = "pageSize")]
    pub(crate) page_size: Option<u32>,
    #[serde(alias = "pageToken")]
    pub(crate) page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GetTask {
    id: String,
    #[serde(alias = "historyLength")]
    history_length: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubscribeTask {
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelTask {
    id: String,
    metadata: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    message: Option<String>,
    #[serde(default, deserialize_with = "even_null")]
    data: Option<Value>,
    #[serde(alias = "contextId")]
    context_id: Option<String>,
    #[serde(alias = "taskId")]
    task_id: Option<String>,
    #[serde(alias = "referenceTaskIds")]
    reference_task_ids: Option<Vec<String>>,
    metadata: Option<Map<String, Value>>,
    #[serde(alias = "messageMetadata")]
    message_metadata: Option<Map<String, Value>>,
    #[serde(alias = "historyLength")]
    history_length: Option<u32>,
    #[serde(alias = "returnImmediately")]
    return_immediately: Option<bool>,
    stream: Option<bool>,
    #[serde(alias = "getTask")]
    get_task: Option<GetTask>,
    #[serde(alias = "subscribeTask")]
    subscribe_task: Option<SubscribeTask>,
    #[serde(alias = "cancelTask")]
    cancel_task: Option<CancelTask>,
    #[serde(alias = "createPushNotificationConfig")]
    create_push_notification_config: Option<Box<CreatePush>>,
    #[serde(alias = "getPushNotificationConfig")]
    get_push_notification_config: Option<OnePush>,
    #[serde(alias = "listPushNotificationConfigs")]
    list_push_notification_configs: Option<ListPush>,
    #[serde(alias = "deletePushNotificationConfig")]
    delete_push_notification_config: Option<OnePush>,
}

/// JSON's null is something that can be sent.
fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn wrong(problem: impl Into<String>) -> AgentError {
    AgentError::InvalidToolInput(problem.into())
}

/// Something was asked for that the agent does not say it can do.
fn missing(what: &str, capability: &str) -> AgentError {
    wrong(format!(
        "found {what}, but the agent card does not advertise `capabilities.{capability}`"
    ))
}

impl Operation {
    /// Reads a tool's arguments, which must ask for one thing that the skill and the agent can do.
    ///
    /// # Errors
    /// When they do not. Values never appear in it.
    pub(crate) fn read(
        arguments: Value,
        accepts: Accepts,
        abilities: Abilities,
    ) -> Result<Self, AgentError> {
        if !arguments.is_object() {
            return Err(wrong("expected an object"));
        }
        let mut arguments: Arguments =
            strict::from_value(arguments).map_err(|error| wrong(error.to_string()))?;
        let sends = arguments.first_send_field();
        let operation = match (arguments.take_modes()?, sends) {
            (Some(mode), Some(field)) => {
                let mode = mode.name();
                return Err(wrong(format!("expected `{mode}` alone, found `{field}` with it")));
            }
            (Some(mode), None) => mode,
            (None, _) => Self::Send(Box::new(arguments.into_send()?)),
        };
        operation.check(accepts, abilities)?;
        Ok(operation)
    }

    /// Its name in a tool's arguments.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Send(_) => "message",
            Self::Get { .. } => "get_task",
            Self::Subscribe { .. } => "subscribe_task",
            Self::Cancel { .. } => "cancel_task",
            Self::CreatePush(_) => "create_push_notification_config",
            Self::GetPush(_) => "get_push_notification_config",
            Self::ListPush(_) => "list_push_notification_configs",
            Self::DeletePush(_) => "delete_push_notification_config",
        }
    }

    /// The task that must have been seen before.
    pub(crate) fn task_id(&self) -> Option<&str> {
        match self {
            Self::Send(send) => send.task_id.as_deref(),
            Self::Get { id, .. } | Self::Subscribe { id } | Self::Cancel { id, .. } => Some(id),
            Self::CreatePush(push) => Some(&push.task_id),
            Self::GetPush(push) | Self::DeletePush(push) => Some(&push.task_id),
            Self::ListPush(push) => Some(&push.task_id),
        }
    }

    /// Whether the answer is a stream.
    pub(crate) fn streams(&self) -> bool {
        match self {
            Self::Send(send) => send.stream,
            Self::Subscribe { .. } => true,
            _ => false,
        }
    }

    fn check(&self, accepts: Accepts, abilities: Abilities) -> Result<(), AgentError> {
        if let Some(id) = self.task_id() {
            check_id(if matches!(self, Self::Send(_)) { "task_id" } else { "id" }, id)?;
        }
        if self.streams() && !abilities.streaming {
            return Err(missing("a stream", "streaming"));
        }
        let pushes = matches!(
            self,
            Self::CreatePush(_) | Self::GetPush(_) | Self::ListPush(_) | Self::DeletePush(_)
        );
        if pushes && !abilities.push {
            return Err(missing("a push-notification config", "pushNotifications"));
        }
        match self {
            Self::Send(send) => send.check(accepts, abilities),
            Self::CreatePush(push) => push.check(),
            Self::GetPush(push) | Self::DeletePush(push) => check_id("id", &push.id),
            Self::Get { .. } | Self::Subscribe { .. } | Self::Cancel { .. } | Self::ListPush(_) => {
                Ok(())
            }
        }
    }
}

impl Arguments {
    /// Which of the fields is there that go with a message.
    fn first_send_field(&self) -> Option<&'static str> {
        let fields = [
            ("message", self.message.is_some()),
            ("data", self.data.is_some()),
            ("context_id", self.context_id.is_some()),
            ("task_id", self.task_id.is_some()),
            ("reference_task_ids", self.reference_task_ids.is_some()),
            ("metadata", self.metadata.is_some()),
            ("message_metadata", self.message_metadata.is_some()),
            ("history_length", self.history_length.is_some()),
            ("return_immediately", self.return_immediately.is_some()),
            ("stream", self.stream == Some(true)),
        ];
        fields.iter().find(|(_, is_there)| *is_there).map(|(name, _)| *name)
    }

    /// The mode, if there is one; there must not be two.
    fn take_modes(&mut self) -> Result<Option<Operation>, AgentError> {
        let get = self.get_task.take().map(|it| {
            let GetTask { id, history_length } = it;
            Operation::Get { id, history_length }
        });
        let subscribe = self.subscribe_task.take().map(|it| Operation::Subscribe { id: it.id });
        let cancel = self.cancel_task.take();
        let cancel = cancel.map(|CancelTask { id, metadata }| Operation::Cancel { id, metadata });
        let create = self.create_push_notification_config.take().map(Operation::CreatePush);
        let fetch = self.get_push_notification_config.take().map(Operation::GetPush);
        let list = self.list_push_notification_configs.take().map(Operation::ListPush);
        let delete = self.delete_push_notification_config.take().map(Operation::DeletePush);
        let mut modes = [get, subscribe, cancel, create, fetch, list, delete].into_iter().flatten();
        match (modes.next(), modes.next()) {
            (Some(one), Some(other)) => {
                let (one, other) = (one.name(), other.name());
                Err(wrong(format!("expected `{one}` alone, found `{other}` with it")))
            }
            (mode, _) => Ok(mode),
        }
    }

    fn into_send(self) -> Result<SendRequest, AgentError> {
        if self.message.is_none() && self.data.is_none() {
            return Err(wrong("expected `message`, `data` or one of the task modes, found none"));
        }
        Ok(SendRequest {
            text: self.message,
            data: self.data,
            context_id: self.context_id,
            task_id: self.task_id,
            reference_task_ids: self.reference_task_ids.unwrap_or_default(),
            metadata: self.metadata.unwrap_or_default(),
            message_metadata: self.message_metadata,
            history_length: self.history_length,
            return_immediately: self.return_immediately,
            stream: self.stream.unwrap_or_default(),
        })
    }
}

impl SendRequest {
    fn check(&self, accepts: Accepts, abilities: Abilities) -> Result<(), AgentError> {
        if self.text.is_some() && !accepts.text {
            return Err(wrong("expected `data`, since the skill takes no text, found `message`"));
        }
        if self.data.is_some() && !accepts.json {
            return Err(wrong("expected `message`, since the skill takes no JSON, found `data`"));
        }
        if self.history_length.is_some() && !abilities.history {
            return Err(missing("`history_length`", "stateTransitionHistory"));
        }
        if self.metadata.get("chio").is_some_and(|chio| !chio.is_object()) {
            return Err(wrong("expected an object as `metadata.chio`, found something else"));
        }
        self.context_id.iter().try_for_each(|id| check_id("context_id", id))?;
        self.reference_task_ids.iter().try_for_each(|id| check_id("reference_task_ids", id))
    }
}

impl CreatePush {
    fn check(&self) -> Result<(), AgentError> {
        self.id.iter().try_for_each(|id| check_id("id", id))?;
        check_callback(&self.url)?;
        let authentication = self.authentication.as_ref();
        let scheme = authentication.map(|authentication| &authentication.scheme);
        let is_token = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~+".contains(&b))
        };
        if scheme.is_some_and(|scheme| !is_token(scheme)) {
            return Err(wrong("expected a name of a scheme in `authentication.scheme`"));
        }
        let credentials = authentication.and_then(|it| it.credentials.as_deref());
        for (member, text) in [("token", self.token.as_deref()), ("credentials", credentials)] {
            let Some(text) = text else { continue };
            if !is_sound(text) {
                let problem =
                    format!("expected text without blanks around it or controls in `{member}`");
                return Err(wrong(problem));
            }
        }
        Ok(())
    }
}

/// Ids are text of some length; what is in them is the agent's business.
fn check_id(member: &str, id: &str) -> Result<(), AgentError> {
    if id.trim().is_empty() || id.len() > MAX_ID || id.chars().any(char::is_control) {
        return Err(wrong(format!(
            "expected 1 to {MAX_ID} bytes without controls in `{member}`, found something else"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
