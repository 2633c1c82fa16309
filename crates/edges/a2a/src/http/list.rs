//! `ListTasks`: the tasks of a caller, page by page.

use std::cmp::Reverse;
use std::sync::Arc;

use chio_core::calendar::parse_rfc3339;
use chio_core::crypto::PublicKey;
use chio_cross_protocol::{CapabilityBridge, TaskQuery};
use chio_net::jsonrpc::Body;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::bridge::A2aBridge;
use crate::dialect::Fields;
use crate::dialect::v1::{STATES, Task, history_length};
use crate::error::Fault;
use crate::record::{State, TaskRecord};
use crate::task_ids::task_id;

/// The size of a page when the client does not say.
const DEFAULT_PAGE: usize = 50;
/// The most tasks of a page.
const MAX_PAGE: usize = 100;

/// The tasks that a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    context_id: Option<String>,
    /// Only tasks in one of these states; all when absent.
    states: Option<Vec<State>>,
    /// Only tasks that changed at this Unix second or later.
    since: Option<u64>,
    page: usize,
    /// The last task of the page before.
    after: Option<Position>,
    history: Option<usize>,
    artifacts: bool,
}

/// The metadata of a request.
type Metadata = Map<String, Value>;

/// The sort key of a task: when it entered its state, and its number.
type Position = (u64, u64);

fn position(record: &TaskRecord) -> Position {
    (record.updated_at, record.number())
}

/// Reads a `ListTasksRequest`, and the metadata that came with it as with other requests.
pub(super) fn read(params: Map<String, Value>) -> Result<(Wanted, Option<Metadata>), Fault> {
    let mut params = Fields::new(params, "params");
    let status = params.one_of("status", &STATES)?.filter(|state| *state != STATES[0]);
    // A state that no task here is in names none.
    let states = status.map(|name| {
        let named = |state: &State| state.into_str() == name;
        State::ALL.into_iter().filter(named).collect()
    });
    let page = match params.integer("pageSize")? {
        None => DEFAULT_PAGE,
        Some(size) => match usize::try_from(size) {
            Ok(size) if (1..=MAX_PAGE).contains(&size) => size,
            _ => return Err(Fault::params(format!("expected `pageSize` of 1 to {MAX_PAGE}"))),
        },
    };
    let after = match params.name("pageToken")? {
        None => None,
        Some(token) => {
            let wrong = || Fault::params("expected a `pageToken` that a page came with");
            Some(read_token(&token).ok_or_else(wrong)?)
        }
    };
    let since = match params.name("statusTimestampAfter")? {
        None => None,
        Some(text) => {
            let wrong = || Fault::params("expected `statusTimestampAfter` as a time in UTC");
            Some(parse_rfc3339(&text).ok_or_else(wrong)?)
        }
    };
    let history = history_length(&mut params)?;
    let wanted = Wanted {
        context_id: params.name("contextId")?,
        states,
        since,
        page,
        after,
        history,
        artifacts: params.flag("includeArtifacts")?.unwrap_or(false),
    };
    Ok((wanted, params.object("metadata")?))
}

fn read_token(token: &str) -> Option<Position> {
    let (updated, number) = token.strip_prefix('p')?.split_once('-')?;
    Some((updated.parse().ok()?, number.parse().ok()?))
}

/// A `ListTasksResponse`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    tasks: Vec<Task<'a>>,
    next_page_token: String,
    page_size: usize,
    total_size: usize,
}

impl Wanted {
    /// What the store is asked for: one task more than a page has, to know whether there are any.
    pub(super) fn query(&self, owner: &PublicKey, now: u64) -> TaskQuery {
        let states = self
            .states
            .as_ref()
            .map(|states| states.iter().flat_map(|state| state.all_stored()).copied().collect());
        TaskQuery {
            owner: owner.clone(),
            protocol: A2aBridge.protocol(),
            context: self.context_id.clone(),
            states,
            since: self.since.unwrap_or_default(),
            after: self.after.map(|(updated, number)| (updated, task_id(number))),
            now,
            limit: self.page + 1,
        }
    }

    /// Whether a task that runs is among those that are wanted.
    pub(super) fn fits(&self, record: &TaskRecord) -> bool {
        let in_context = self.context_id.is_none() || record.context_id == self.context_id;
        let in_state = self.states.as_ref().is_none_or(|states| states.contains(&record.state));
        in_context && in_state && self.since.is_none_or(|since| record.updated_at >= since)
    }
}

/// Writes a page of tasks, of so many: the newest first.
pub(super) fn write(mut records: Vec<Arc<TaskRecord>>, total: usize, wanted: &Wanted) -> Body {
    records.sort_by_key(|record| Reverse(position(record)));
    let rest = records.iter().filter(|record| wanted.after.is_none_or(|it| position(record) < it));
    let mut page: Vec<&Arc<TaskRecord>> = rest.take(wanted.page + 1).collect();
    let more = page.len() > wanted.page;
    page.truncate(wanted.page);
    let last = page.last().filter(|_| more).map(|record| position(record));
    let token = last.map(|(updated, number)| format!("p{updated}-{number}")).unwrap_or_default();
    let tasks = page.iter().map(|record| Task::new(record, wanted.history, wanted.artifacts));
    Body::written(&Page {
        tasks: tasks.collect(),
        next_page_token: token,
        page_size: wanted.page,
        total_size: total,
    })
}

#[cfg(test)]
mod tests;
