//! Which act is meant, and its receipts.

use anyhow::Result;
use chio_kernel::store::{ReceiptQuery, ReceiptRow, SharedStore};
use serde_json::Value;

use crate::commands::receipt::{find, row};
use crate::outcome::Refused;
use crate::request_id::made_at;

/// How many receipts are read at once.
const PAGE: usize = 500;
/// How many receipts are looked at for that of a request.
const MOST_SEARCHED: usize = 100_000;
/// Seconds by which clocks of kernels may differ.
const SKEW: u64 = 60;

/// An act: all receipts of a trace, or one that belongs to none, such as that of a read outside of
/// any call.
pub(super) enum Act {
    Trace(String),
    Alone(Box<ReceiptRow>),
}

/// The trace of this name, or the act of the receipt or request of this name.
pub(super) async fn act_of(store: &SharedStore, id: &str) -> Result<Act> {
    let trace_id = Some(id.to_owned());
    let of_trace = ReceiptQuery { trace_id, limit: 1, ..ReceiptQuery::default() };
    if !store.query(&of_trace).await?.is_empty() {
        return Ok(Act::Trace(id.to_owned()));
    }
    let row = match find::receipt(store, id).await? {
        Some(row) => Some(row),
        None => of_request(store, id).await?,
    };
    let Some(row) = row else {
        let message = format!("there is no trace, receipt or request `{id}` in the store");
        return Err(Refused::new(message).into());
    };
    if let Some(trace) = named_trace(&row.body) {
        return Ok(Act::Trace(trace));
    }
    row::read(&row)?;
    Ok(Act::Alone(Box::new(row)))
}

/// The trace that an entry names: as the store finds it by, so also in one that is no receipt.
fn named_trace(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let text = |path: &str| Some(body.pointer(path)?.as_str()?.to_owned());
    text("/metadata/chio/bridge/trace/traceId")
        .or_else(|| text("/metadata/chio/trace/traceId"))
        .or_else(|| text("/metadata/traceId"))
}

/// The receipt of a request. Its name tells when it was made, and its receipt was signed after that.
async fn of_request(store: &SharedStore, id: &str) -> Result<Option<ReceiptRow>> {
    let Some(made_at) = made_at(id) else { return Ok(None) };
    let since = Some((made_at / 1000).saturating_sub(SKEW));
    let mut query = ReceiptQuery { since, limit: PAGE, ..ReceiptQuery::default() };
    let mut seen = 0;
    loop {
        let page = store.query(&query).await?;
        let Some(last) = page.last() else { return Ok(None) };
        query.cursor = Some(last.cursor);
        seen += page.len();
        // What cannot be read is not what is looked for.
        let is_its = |row: &ReceiptRow| row::read(row).is_ok_and(|it| it.request_id() == Some(id));
        if let Some(row) = page.into_iter().find(is_its) {
            return Ok(Some(row));
        }
        if seen >= MOST_SEARCHED {
            let message = format!(
                "no receipt of `{id}` is among the first {seen} since it was made: name a receipt"
            );
            return Err(Refused::new(message).into());
        }
    }
}

/// The receipts of a trace, oldest first, at most this many; and whether there are more.
pub(super) async fn receipts(
    store: &SharedStore,
    trace_id: &str,
    most: usize,
) -> Result<(Vec<ReceiptRow>, bool)> {
    let trace_id = Some(trace_id.to_owned());
    let mut query = ReceiptQuery { trace_id, limit: PAGE, ..ReceiptQuery::default() };
    let mut rows = Vec::new();
    loop {
        let page = store.query(&query).await?;
        let Some(last) = page.last() else { return Ok((rows, false)) };
        query.cursor = Some(last.cursor);
        rows.extend(page);
        if rows.len() > most {
            rows.truncate(most);
            return Ok((rows, true));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chio_kernel::SystemClock;
    use chio_kernel::store::Entry;
    use chio_store::{OpenStore, StoreUrl};
    use serde_json::json;

    use super::{PAGE, named_trace, receipts};

    #[tokio::test]
    async fn a_trace_is_read_page_by_page_up_to_its_bound() {
        let store =
            OpenStore::open(&StoreUrl::Memory, Arc::new(SystemClock::default())).await.unwrap();
        let slot = store.take_slot(None).await.unwrap();
        let count = 2 * PAGE + 1;
        for number in 0..count {
            let trace = if number == 7 { "other" } else { "this" };
            let body = json!({"id": number.to_string(), "metadata": {"traceId": trace}});
            let entry = Entry::new(body.to_string().into_bytes());
            slot.ledger.append(entry).await.unwrap();
        }
        let shared = store.shared();
        for (most, expected) in [
            (count, (count - 1, false)),
            (count - 1, (count - 1, false)),
            (count - 2, (count - 2, true)),
        ] {
            let (rows, cut) = receipts(&shared, "this", most).await.unwrap();
            assert_eq!((rows.len(), cut), expected, "at most {most}");
        }
    }

    #[test]
    fn an_entry_names_its_trace_even_if_it_is_no_receipt() {
        let of_call = json!({"metadata": {"chio": {"bridge": {"trace": {"traceId": "t"}}}}});
        for (body, expected) in [
            (of_call, Some("t")),
            (json!({"metadata": {"chio": {"trace": {"traceId": "t"}}}}), Some("t")),
            (json!({"metadata": {"traceId": "t"}}), Some("t")),
            (json!({"metadata": {"chio": 3}}), None),
            (json!("t"), None),
        ] {
            let body = body.to_string();
            assert_eq!(named_trace(body.as_bytes()).as_deref(), expected, "{body}");
        }
        assert_eq!(named_trace(b"no JSON"), None);
    }
}
