//! `ListTasks`: the tasks of a caller, page by page.

use std::cmp::Reverse;
use std::sync::Arc;

use chio_core::calendar::parse_rfc3339;
use chio_net::jsonrpc::Body;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::dialect::Fields;
use crate::dialect::v1::{STATES, Task, history_length};
use crate::error::Fault;
use crate::record::TaskRecord;

/// The size of a page when the client does not say.
const DEFAULT_PAGE: usize = 50;
/// The most tasks of a page.
const MAX_PAGE: usize = 100;

/// The tasks that a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    context_id: Option<String>,
    state: Option<&'static str>,
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
    let state = params.one_of("status", &STATES)?.filter(|state| *state != STATES[0]);
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
        state,
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

/// Writes a page of tasks: the newest first.
pub(super) fn write(mut records: Vec<Arc<TaskRecord>>, wanted: &Wanted) -> Body {
    records.retain(|record| {
        let in_context = wanted.context_id.is_none() || record.context_id == wanted.context_id;
        let in_state = wanted.state.is_none_or(|state| record.state.into_str() == state);
        in_context && in_state && wanted.since.is_none_or(|since| record.updated_at >= since)
    });
    let total = records.len();
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
