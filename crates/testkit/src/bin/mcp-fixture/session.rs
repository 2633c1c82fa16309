//! The one session that a stdio server has: what the client can do and wants to hear.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::Options;
use crate::cancel::Cancel;
use crate::wire::Wire;

/// How grave a log message is, from the least.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The session, shared by every call that runs.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) wire: Wire,
    pub(crate) page_size: Option<usize>,
    /// The only tool that there is, unless all are there.
    pub(crate) only: Option<String>,
    /// A tool that is there besides, and that no client should be shown unasked.
    pub(crate) also: Option<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What the client said that it can do; none before `initialize`.
    client: Option<Value>,
    least_level: usize,
    watched: BTreeSet<String>,
    grown: usize,
    /// Notifications that are no part of MCP.
    heard: Vec<Value>,
    /// The calls that run, by their request's id as JSON.
    running: HashMap<String, Arc<Cancel>>,
}

impl Session {
    pub(crate) fn new(options: Options) -> Self {
        let Options { page_size, only, also } = options;
        Self { wire: Wire::default(), page_size, only, also, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins, with what the client can do.
    pub(crate) fn begin(&self, capabilities: Value) {
        self.state().client = Some(capabilities);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.state().client.is_some()
    }

    /// Whether the client said that it can do this.
    pub(crate) fn client_can(&self, capability: &str) -> bool {
        self.state().client.as_ref().is_some_and(|client| client.get(capability).is_some())
    }

    /// Leaves out log messages below a level; answers whether there is such a level.
    pub(crate) fn set_level(&self, level: &str) -> bool {
        let found = LEVELS.iter().position(|known| *known == level);
        if let Some(found) = found {
            self.state().least_level = found;
        }
        found.is_some()
    }

    /// Sends a log message, unless the client does not want it.
    pub(crate) fn log(&self, level: &str, text: &str) {
        let wanted =
            LEVELS.iter().position(|known| *known == level) >= Some(self.state().least_level);
        if wanted {
            let params = json!({"level": level, "logger": "mcp-fixture", "data": text});
            self.wire.notify("notifications/message", &params);
        }
    }

    /// Remembers a notification that is no part of MCP.
    pub(crate) fn hear(&self, method: &str, params: &Value) {
        if !matches!(method, "notifications/initialized" | "notifications/roots/list_changed") {
            self.state().heard.push(json!({"method": method, "params": params}));
        }
    }

    /// The notifications that are no part of MCP.
    pub(crate) fn heard(&self) -> Vec<Value> {
        self.state().heard.clone()
    }

    /// Begins or ends to tell the client about changes of a resource.
    pub(crate) fn watch(&self, uri: &str, wanted: bool) {
        let mut state = self.state();
        if wanted {
            state.watched.insert(uri.to_owned());
        } else {
            state.watched.remove(uri);
        }
    }

    pub(crate) fn watches(&self, uri: &str) -> bool {
        self.state().watched.contains(uri)
    }

    /// How many tools were grown.
    pub(crate) fn grown(&self) -> usize {
        self.state().grown
    }

    /// Grows one more tool; answers its number.
    pub(crate) fn grow(&self) -> usize {
        let mut state = self.state();
        state.grown += 1;
        state.grown
    }

    /// Remembers a call until [`Session::ended`].
    pub(crate) fn started(&self, id: &Value) -> Arc<Cancel> {
        let cancel = Arc::new(Cancel::default());
        self.state().running.insert(id.to_string(), Arc::clone(&cancel));
        cancel
    }

    pub(crate) fn ended(&self, id: &Value) {
        self.state().running.remove(&id.to_string());
    }

    /// Cancels a call, if it still runs.
    pub(crate) fn cancel(&self, id: &Value) {
        if let Some(cancel) = self.state().running.get(&id.to_string()) {
            cancel.cancel();
        }
    }
}
