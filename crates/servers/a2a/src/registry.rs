//! Which task belongs to which tool, agent and interface, and which context to which caller. Follow-ups
//! are for those alone.

mod file;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::answer::{SeenTask, is_final};
use crate::error::AgentError;
use file::RegistryFile;

/// How many tasks are remembered.
const MAX_TASKS: usize = 4096;
/// After how long a task that is over is in the file.
const SOON: Duration = Duration::from_millis(500);
/// How old, in seconds, a task's row gets before the same state is written down again.
const STALE: u64 = 60;

/// Where a task was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub(crate) enum Seen {
    SendMessage,
    GetTask,
    CancelTask,
    StreamEvent,
    SubscribeEvent,
    Context,
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
    /// The caller; a task without one belongs to no caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
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
            ("caller", self.subject != other.subject),
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
pub(crate) struct Registry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// All tasks; with a file, those that it does not have yet. They are over: callers hardly ask
    /// for them again, and each would have the whole file written.
    rows: Mutex<Rows>,
    file: Option<RegistryFile>,
    /// A write of them is about to come.
    awaited: AtomicBool,
}

/// Whether a task that was seen is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Now,
    Later,
}

impl Registry {
    /// A registry; with a path, of what is in that file.
    ///
    /// # Errors
    /// When the file is there and cannot be understood.
    pub(crate) fn open(path: Option<PathBuf>) -> Result<Self, AgentError> {
        let file = path.map(RegistryFile::new);
        if let Some(file) = &file {
            file.read()?;
        }
        let (rows, awaited) = (Mutex::default(), AtomicBool::new(false));
        Ok(Self(Arc::new(Inner { rows, file, awaited })))
    }

    /// Checks that a task was seen before, and belongs to this.
    ///
    /// # Errors
    /// When it was not, or belongs to something else.
    pub(crate) async fn check(&self, task_id: &str, bound: &Bound) -> Result<(), AgentError> {
        let (inner, id, bound) = (Arc::clone(&self.0), task_id.to_owned(), bound.clone());
        self.run(move || inner.check(&id, &bound)).await
    }

    /// Checks that tasks that a message refers to were seen before, and belong to its caller.
    ///
    /// # Errors
    /// When one was not, or belongs to something else.
    pub(crate) async fn check_references(
        &self,
        task_ids: &[String],
        bound: &Bound,
    ) -> Result<(), AgentError> {
        let (inner, ids, bound) = (Arc::clone(&self.0), task_ids.to_vec(), bound.clone());
        let check = move || ids.iter().try_for_each(|id| inner.check_reference(id, &bound));
        self.run(check).await
    }

    /// Writes down that a context belongs to this caller.
    ///
    /// # Errors
    /// When it belongs to another one, or cannot be written down.
    pub(crate) async fn claim(
        &self,
        context_id: &str,
        bound: Bound,
        now: u64,
    ) -> Result<(), AgentError> {
        // It is of no tool, and nothing more comes of it.
        let state = Some("TASK_STATE_COMPLETED".to_owned());
        let context = SeenTask { task_id: format!("context {context_id}"), state };
        let bound = Bound { tool_name: String::new(), ..bound };
        self.record(context, bound, Seen::Context, now).await
    }

    /// Writes down that a task was seen.
    ///
    /// # Errors
    /// When it belongs to something else, or cannot be written down.
    pub(crate) async fn record(
        &self,
        seen_task: SeenTask,
        bound: Bound,
        source: Seen,
        now: u64,
    ) -> Result<(), AgentError> {
        let inner = Arc::clone(&self.0);
        let written = self.run(move || inner.record(&seen_task, &bound, source, now)).await?;
        if written == Written::Later && !self.0.awaited.swap(true, Ordering::Relaxed) {
            let inner = Arc::downgrade(&self.0);
            tokio::spawn(async move {
                tokio::time::sleep(SOON).await;
                // When the last handle was dropped before, that has written them.
                let Some(inner) = inner.upgrade() else { return };
                inner.awaited.store(false, Ordering::Relaxed);
                let _ = tokio::task::spawn_blocking(move || inner.write(|_| Ok(()))).await;
            });
        }
        Ok(())
    }

    /// Does what may wait for a disk on a thread that may block; what cannot wait, here.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, AgentError> + Send + 'static,
    ) -> Result<T, AgentError> {
        if self.0.file.is_none() {
            return work();
        }
        let broken = |_| AgentError::Lifecycle("the registry broke off".to_owned());
        tokio::task::spawn_blocking(work).await.map_err(broken)?
    }
}

impl Inner {
    /// What is known of a task.
    fn row(&self, task_id: &str) -> Result<Option<Row>, AgentError> {
        let row = self.rows.lock().get(task_id).cloned();
        match &self.file {
            Some(file) if row.is_none() => Ok(file.read()?.get(task_id).cloned()),
            _ => Ok(row),
        }
    }

    fn check(&self, task_id: &str, bound: &Bound) -> Result<(), AgentError> {
        let known = self.row(task_id)?.ok_or_else(|| {
            AgentError::Lifecycle(format!(
                "expected a task that tool `{}` of `{}` was told of, found one never recorded",
                bound.tool_name, bound.server_id
            ))
        })?;
        known.bound.difference(bound).map_or(Ok(()), |what| Err(foreign(what, bound)))
    }

    fn check_reference(&self, task_id: &str, bound: &Bound) -> Result<(), AgentError> {
        // The tools of one agent are parts of one conversation.
        let tool_name = self.row(task_id)?.map(|row| row.bound.tool_name);
        let tool_name = tool_name.unwrap_or_else(|| bound.tool_name.clone());
        self.check(task_id, &Bound { tool_name, ..bound.clone() })
    }

    fn record(
        &self,
        seen_task: &SeenTask,
        bound: &Bound,
        source: Seen,
        now: u64,
    ) -> Result<Written, AgentError> {
        if self.file.is_none() {
            note(&mut self.rows.lock(), seen_task, bound, source, now)?;
            return Ok(Written::Now);
        }
        let row = self.row(&seen_task.task_id)?;
        // What changes nothing needs no lock and no write.
        if row.as_ref().is_some_and(|row| {
            row.bound == *bound
                && (seen_task.state.is_none() || row.last_state == seen_task.state)
                && now.saturating_sub(row.last_seen_at) < STALE
        }) {
            return Ok(Written::Now);
        }
        if !seen_task.state.as_deref().is_some_and(is_final) {
            self.write(|rows| note(rows, seen_task, bound, source, now))?;
            return Ok(Written::Now);
        }
        let mut rows = self.rows.lock();
        if let Some(row) = row {
            rows.entry(row.task_id.clone()).or_insert(row);
        }
        note(&mut rows, seen_task, bound, source, now)?;
        Ok(Written::Later)
    }

    /// Writes down what is not in the file yet, and one more change.
    fn write(
        &self,
        change: impl FnOnce(&mut Rows) -> Result<(), AgentError>,
    ) -> Result<(), AgentError> {
        let Some(file) = &self.file else { return Ok(()) };
        let waiting = self.rows.lock().clone();
        file.change(|rows| {
            for (id, row) in &waiting {
                // SECURITY: a task stays with what it was bound to first.
                if rows.get(id).is_none_or(|known| known.bound == row.bound) {
                    make_room(rows, id);
                    rows.insert(id.clone(), row.clone());
                }
            }
            change(rows)
        })?;
        self.rows.lock().retain(|id, row| waiting.get(id) != Some(row));
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.rows.lock().is_empty() {
            // What cannot be written is refused later, as a task that was never seen.
            let _ = self.write(|_| Ok(()));
        }
    }
}

fn foreign(what: &str, bound: &Bound) -> AgentError {
    let (tool, server) = (&bound.tool_name, &bound.server_id);
    let expected = match tool.as_str() {
        "" => format!("a context of `{server}`"),
        tool => format!("a task of tool `{tool}` of `{server}`"),
    };
    AgentError::Lifecycle(format!("expected {expected}, found one of another {what}"))
}

/// Notes a task that was seen, and makes room for it.
fn note(
    rows: &mut Rows,
    seen_task: &SeenTask,
    bound: &Bound,
    source: Seen,
    now: u64,
) -> Result<(), AgentError> {
    let SeenTask { task_id, state } = seen_task;
    if let Some(row) = rows.get_mut(task_id) {
        // SECURITY: a task is bound once; an agent cannot hand it to another tool's callers.
        if let Some(what) = row.bound.difference(bound) {
            return Err(foreign(what, bound));
        }
        row.last_seen_at = row.last_seen_at.max(now);
        row.last_state = state.clone().or_else(|| row.last_state.take());
        source.into_str().clone_into(&mut row.last_source);
        return Ok(());
    }
    make_room(rows, task_id);
    let row = Row {
        task_id: task_id.clone(),
        bound: bound.clone(),
        first_seen_at: now,
        last_seen_at: now,
        last_state: state.clone(),
        last_source: source.into_str().to_owned(),
    };
    rows.insert(task_id.clone(), row);
    Ok(())
}

/// Forgets as many tasks as one more needs.
fn make_room(rows: &mut Rows, task_id: &str) {
    while rows.len() >= MAX_TASKS && !rows.contains_key(task_id) {
        let Some(oldest) = oldest(rows) else { break };
        rows.remove(&oldest);
    }
}

/// The task that is forgotten first: of those that are over the one seen longest ago, else of all.
fn oldest(rows: &Rows) -> Option<String> {
    let is_over = |row: &Row| row.last_state.as_deref().is_some_and(is_final);
    let first = rows.values().min_by_key(|row| (!is_over(row), row.last_seen_at));
    first.map(|row| row.task_id.clone())
}

#[cfg(test)]
mod tests;
