//! Whom a child speaks to, and whose call a message belongs to.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::State;
use super::events::Route;

/// What a client can do that servers are told of.
const FORWARDED: [&str; 5] = ["sampling", "elicitation", "roots", "experimental", "extensions"];
/// What our own extensions begin with: they are for us, not for servers.
const OURS: &str = "chio";
/// The member of `_meta` that names a task.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// How long a child may still work on a call that was left.
pub(super) const LEFT_FOR: Duration = Duration::from_secs(10);

/// Whom a child speaks to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Audience {
    /// No client.
    Nobody,
    /// The client of one session, which can do this.
    Session(Map<String, Value>),
    /// The clients of several sessions: in the course of calls that are surely theirs.
    Shared,
}

impl Audience {
    /// The client of a session, with what servers are told of it.
    pub(crate) fn session(client: &Map<String, Value>) -> Self {
        let mut told = Map::new();
        for (name, value) in client.iter().filter(|(name, _)| FORWARDED.contains(&name.as_str())) {
            let mut value = value.clone();
            if let ("experimental", Value::Object(members)) = (name.as_str(), &mut value) {
                members.retain(|name, _| !name.starts_with(OURS));
                if members.is_empty() {
                    continue;
                }
            }
            told.insert(name.clone(), value);
        }
        Self::Session(told)
    }

    /// The capabilities that the child is told of. Whether a client of several can do something is
    /// known only when it is asked.
    pub(crate) fn announced(&self) -> Value {
        match self {
            Self::Nobody => json!({}),
            Self::Session(client) => Value::Object(client.clone()),
            Self::Shared => {
                json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}})
            }
        }
    }

    /// Whether what needs this capability can be asked.
    pub(super) fn takes(&self, capability: &str) -> bool {
        match self {
            Self::Nobody => false,
            Self::Session(client) => client.contains_key(capability),
            Self::Shared => ["sampling", "elicitation", "roots"].contains(&capability),
        }
    }
}

impl State {
    /// The call that a message belongs to: the one that it names, or the newest. None where the calls
    /// that run, and those that the child may still speak of, are not all of one session.
    pub(super) fn call_of(&self, params: &Map<String, Value>) -> Option<&Route> {
        let related = params.get("_meta").and_then(|meta| meta.get(RELATED_TASK));
        let task = related.and_then(|task| task.get("taskId")).and_then(Value::as_str);
        if let Some(task) = task
            && let Some(call) = self.calls.iter().find(|call| call.task.as_deref() == Some(task))
        {
            return Some(call);
        }
        let newest = self.calls.last()?;
        // SECURITY: what may be for one of several sessions is for none of them.
        let sure = newest.session.as_ref().is_none_or(|session| {
            let now = Instant::now();
            let mut recent = self.recent.iter().filter(|(_, until)| **until > now);
            task.is_none()
                && self.calls.iter().all(|call| call.session.as_ref() == Some(session))
                && recent.all(|(other, _)| other == session)
        });
        sure.then_some(newest)
    }

    /// A call of a session has ended, of which the child may still speak for so long.
    pub(super) fn remember(&mut self, session: String, late: Duration) {
        let now = Instant::now();
        self.recent.retain(|_, until| *until > now);
        let until = self.recent.entry(session).or_insert(now);
        *until = (*until).max(now + late);
    }
}
