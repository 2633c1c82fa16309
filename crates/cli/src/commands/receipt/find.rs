//! A receipt by its id, or by the beginning of it.

use anyhow::Result;
use chio_kernel::store::{ReceiptQuery, ReceiptRow, SharedStore};

use super::row;
use crate::outcome::Refused;

/// The fewest letters that may stand for an id.
const FEWEST: usize = 8;
/// How an id of a child begins.
const CHILD: &str = "child-rcpt-";
/// How many receipts are read at once.
const PAGE: usize = 500;
/// How many of the newest are looked through for one that begins so.
const MOST_SEARCHED: usize = 20_000;

/// Whether this can be an id, or the beginning of one.
pub(super) fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix(CHILD).unwrap_or(text);
    digits.len() >= FEWEST && digits.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// The receipt with this id, or the only one of the newest whose id begins so.
pub(super) async fn receipt(store: &SharedStore, id: &str) -> Result<Option<ReceiptRow>> {
    if let Some(row) = store.find(id).await? {
        return Ok(Some(row));
    }
    if !is_id(id) {
        return Ok(None);
    }
    let mut query = ReceiptQuery { newest_first: true, limit: PAGE, ..ReceiptQuery::default() };
    let (mut seen, mut found): (usize, Option<ReceiptRow>) = (0, None);
    while seen < MOST_SEARCHED {
        let page = store.query(&query).await?;
        let Some(last) = page.last() else { break };
        query.cursor = Some(last.cursor);
        seen += page.len();
        for row in page {
            if !begins(&row, id) {
                continue;
            }
            if found.is_some() {
                let message = format!("several receipts begin with `{id}`: give more of it");
                return Err(Refused::new(message).into());
            }
            found = Some(row);
        }
    }
    Ok(found)
}

fn begins(row: &ReceiptRow, beginning: &str) -> bool {
    // What cannot be read is not what is looked for.
    row::read(row).is_ok_and(|receipt| {
        let id = receipt.id();
        id.starts_with(beginning)
            || id.strip_prefix(CHILD).is_some_and(|it| it.starts_with(beginning))
    })
}
