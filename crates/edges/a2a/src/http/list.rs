//! `ListTasks`: the tasks of a caller, page by page.

use std::cmp::Reverse;
use std::sync::Arc;

use chio_cross_protocol::jsonrpc::Body;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::dialect::Fields;
use crate::dialect::v1::{STATES, Task};
use crate::error::Fault;
use crate::moment::seconds;
use crate::record::TaskRecord;

/// How many tasks a page has when nobody says.
const PAGE: usize = 50;
/// How many tasks a page may have.
const MOST: usize = 100;

/// Which tasks are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    context_id: Option<String>,
    state: Option<&'static str>,
    /// From when on, in Unix seconds.
    since: Option<u64>,
    page: usize,
    /// Behind which task the page begins.
    after: Option<Place>,
    history: Option<usize>,
    artifacts: bool,
}

/// What is said beside a request.
type Metadata = Map<String, Value>;

/// Where a task stands in the list: when it came into its state, and its number.
type Place = (u64, u64);

fn place(record: &TaskRecord) -> Place {
    (record.updated_at, record.number())
}

/// Reads a `ListTasksRequest`, and the metadata that came with it as with other requests.
pub(super) fn read(params: Map<String, Value>) -> Result<(Wanted, Option<Metadata>), Fault> {
    let mut params = Fields::new(params, "params");
    let state = params.one_of("status", &STATES)?.filter(|state| *state != STATES[0]);
    let page = match params.integer("pageSize")? {
        None => PAGE,
        Some(size) => match usize::try_from(size) {
            Ok(size) if (1..=MOST).contains(&size) => size,
            _ => return Err(Fault::params(format!("expected `pageSize` of 1 to {MOST}"))),
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
            Some(seconds(&text).ok_or_else(wrong)?)
        }
    };
    let history = match params.integer("historyLength")? {
        None => None,
        Some(length) => {
            let wrong = |_| Fault::params("expected `historyLength` of at least 0");
            Some(usize::try_from(length).map_err(wrong)?)
        }
    };
    let wanted = Wanted {
        context_id: params.name("contextId")?,
        state,
        since,
        page,
        after,
        history,
        artifacts: params.flag("includeArtifacts")?.unwrap_or(false),
    };
    Ok((wanted, params.object("metadata")?))
}

fn read_token(token: &str) -> Option<Place> {
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

/// Writes a page of tasks: the newest first.
pub(super) fn write(mut records: Vec<Arc<TaskRecord>>, wanted: &Wanted) -> Body {
    records.retain(|record| {
        let in_context = wanted.context_id.is_none() || record.context_id == wanted.context_id;
        let in_state = wanted.state.is_none_or(|state| record.state.name() == state);
        in_context && in_state && wanted.since.is_none_or(|since| record.updated_at >= since)
    });
    let total = records.len();
    records.sort_by_key(|record| Reverse(place(record)));
    let rest = records.iter().filter(|record| wanted.after.is_none_or(|it| place(record) < it));
    let mut page: Vec<&Arc<TaskRecord>> = rest.take(wanted.page + 1).collect();
    let more = page.len() > wanted.page;
    page.truncate(wanted.page);
    let last = page.last().filter(|_| more).map(|record| place(record));
    let token = last.map(|(updated, number)| format!("p{updated}-{number}")).unwrap_or_default();
    let tasks = page.iter().map(|record| Task::of(record, wanted.history, wanted.artifacts));
    Body::written(&Page {
        tasks: tasks.collect(),
        next_page_token: token,
        page_size: wanted.page,
        total_size: total,
    })
}

#[cfg(test)]
mod tests;
