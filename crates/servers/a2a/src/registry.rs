//! Which task belongs to which tool, agent and interface. Follow-ups are for those alone.

mod file;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::answer::{Sighting, is_final};
use crate::error::A2aError;
use file::RegistryFile;

/// How many tasks are remembered.
const MAX_TASKS: usize = 4096;
/// How old, in seconds, the last sighting gets before the same one is written down again.
const STALE: u64 = 60;

/// Where a task was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Send,
    Get,
    Cancel,
    Stream,
    Subscribe,
}

impl Seen {
    const fn name(self) -> &'static str {
        match self {
            Self::Send => "send_message",
            Self::Get => "get_task",
            Self::Cancel => "cancel_task",
            Self::Stream => "stream_event",
            Self::Subscribe => "subscribe_event",
        }
    }
}

/// What a task belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bound {
    pub(crate) tool_name: String,
    pub(crate) server_id: String,
    pub(crate) interface_url: String,
    pub(crate) protocol_binding: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<String>,
    pub(crate) partner: String,
}

impl Bound {
    /// The first in which another differs.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        let differs = [
            ("tool", self.tool_name != other.tool_name),
            ("server", self.server_id != other.server_id),
            ("interface", self.interface_url != other.interface_url),
            ("binding", self.protocol_binding != other.protocol_binding),
            ("tenant", self.tenant != other.tenant),
            ("partner", self.partner != other.partner),
        ];
        differs.iter().find(|(_, differs)| *differs).map(|(name, _)| *name)
    }
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    task_id: String,
    #[serde(flatten)]
    bound: Bound,
    first_seen_at: u64,
    last_seen_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_state: Option<String>,
    last_source: String,
}

type Rows = BTreeMap<String, Row>;

/// Remembers tasks: in memory, or in a file that several adapters share.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    rows: Arc<Mutex<Rows>>,
    file: Option<Arc<RegistryFile>>,
}

impl Registry {
    /// A registry; with a path, of what is in that file.
    ///
    /// # Errors
    /// When the file is there and cannot be understood.
    pub(crate) fn open(path: Option<PathBuf>) -> Result<Self, A2aError> {
        let file = path.map(RegistryFile::new).map(Arc::new);
        if let Some(file) = &file {
            file.read()?;
        }
        Ok(Self { rows: Arc::default(), file })
    }

    /// Checks that a task was seen before, and belongs to this.
    ///
    /// # Errors
    /// When it was not, or belongs to something else.
    pub(crate) async fn check(&self, task_id: &str, bound: &Bound) -> Result<(), A2aError> {
        let (registry, id, bound) = (self.clone(), task_id.to_owned(), bound.clone());
        self.run(move || registry.check_now(&id, &bound)).await
    }

    /// Writes down that a task was seen.
    ///
    /// # Errors
    /// When it belongs to something else, or cannot be written down.
    pub(crate) async fn record(
        &self,
        sighting: Sighting,
        bound: Bound,
        source: Seen,
        now: u64,
    ) -> Result<(), A2aError> {
        let registry = self.clone();
        self.run(move || registry.record_now(&sighting, &bound, source, now)).await
    }

    /// Does what may wait for a disk away from everybody else; what cannot wait, here.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, A2aError> + Send + 'static,
    ) -> Result<T, A2aError> {
        if self.file.is_none() {
            return work();
        }
        let broken = |_| A2aError::Lifecycle("the registry broke off".to_owned());
        tokio::task::spawn_blocking(work).await.map_err(broken)?
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_now(&self, task_id: &str, bound: &Bound) -> Result<(), A2aError> {
        let known = match &self.file {
            None => self.rows().get(task_id).map(|row| row.bound.clone()),
            Some(file) => file.read()?.get(task_id).map(|row| row.bound.clone()),
        };
        let known = known.ok_or_else(|| {
            A2aError::Lifecycle(format!(
                "expected a task that tool `{}` of `{}` was told of, found one never recorded",
                bound.tool_name, bound.server_id
            ))
        })?;
        known.difference(bound).map_or(Ok(()), |what| Err(foreign(what, bound)))
    }

    fn record_now(
        &self,
        sighting: &Sighting,
        bound: &Bound,
        source: Seen,
        now: u64,
    ) -> Result<(), A2aError> {
        let Some(file) = &self.file else {
            return note(&mut self.rows(), sighting, bound, source, now).map(drop);
        };
        // What changes nothing needs no lock and no write.
        if let Some(row) = file.read()?.get(&sighting.task_id)
            && row.bound == *bound
            && (sighting.state.is_none() || row.last_state == sighting.state)
            && now.saturating_sub(row.last_seen_at) < STALE
        {
            return Ok(());
        }
        file.change(|rows| note(rows, sighting, bound, source, now))
    }
}

fn foreign(what: &str, bound: &Bound) -> A2aError {
    A2aError::Lifecycle(format!(
        "expected a task of tool `{}` of `{}`, found one of another {what}",
        bound.tool_name, bound.server_id
    ))
}

/// Notes a sighting, and makes room for it.
fn note(
    rows: &mut Rows,
    sighting: &Sighting,
    bound: &Bound,
    source: Seen,
    now: u64,
) -> Result<(), A2aError> {
    let Sighting { task_id, state } = sighting;
    if let Some(row) = rows.get_mut(task_id) {
        // SECURITY: a task is bound once; an agent cannot hand it to another tool's callers.
        if let Some(what) = row.bound.difference(bound) {
            return Err(foreign(what, bound));
        }
        row.last_seen_at = row.last_seen_at.max(now);
        row.last_state = state.clone().or_else(|| row.last_state.take());
        source.name().clone_into(&mut row.last_source);
        return Ok(());
    }
    while rows.len() >= MAX_TASKS {
        let Some(oldest) = oldest(rows) else { break };
        rows.remove(&oldest);
    }
    let row = Row {
        task_id: task_id.clone(),
        bound: bound.clone(),
        first_seen_at: now,
        last_seen_at: now,
        last_state: state.clone(),
        last_source: source.name().to_owned(),
    };
    rows.insert(task_id.clone(), row);
    Ok(())
}

/// The task that is forgotten first: of those that are over the one seen longest ago, else of all.
fn oldest(rows: &Rows) -> Option<String> {
    let is_over = |row: &Row| row.last_state.as_deref().is_some_and(is_final);
    let first = rows.values().min_by_key(|row| (!is_over(row), row.last_seen_at));
    first.map(|row| row.task_id.clone())
}

#[cfg(test)]
mod tests;
