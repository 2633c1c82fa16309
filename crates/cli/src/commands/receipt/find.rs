//! A receipt by its id, or by the beginning of it.

use anyhow::Result;
use chio_kernel::store::{ReceiptQuery, ReceiptRow, SharedStore};

use super::row;
use crate::outcome::Refused;

/// The fewest letters that may stand for an id.
const FEWEST: usize = 8;
/// How an id of a child begins. A UUID follows, which begins with the time.
const CHILD: &str = "child-rcpt-";
/// Hex digits of a UUID that are its time, in milliseconds.
const TIME_DIGITS: usize = 12;
/// Seconds by which the time in an id may differ from that in its receipt.
const SKEW: u64 = 60;
/// How many receipts are read at once.
const PAGE: usize = 500;

/// Whether this can be an id, or the beginning of one.
pub(super) fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix(CHILD).unwrap_or(text);
    digits.len() >= FEWEST && digits.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// The receipt with this id, or the only one whose id begins so.
pub(super) async fn receipt(store: &SharedStore, id: &str) -> Result<Option<ReceiptRow>> {
    if let Some(row) = store.find(id).await? {
        return Ok(Some(row));
    }
    if !is_id(id) {
        return Ok(None);
    }
    let mut found = store.find_beginning(id, 2).await?;
    children(store, id, &mut found).await?;
    if found.len() > 1 {
        let message = format!("several receipts begin with `{id}`: give more of it");
        return Err(Refused::new(message).into());
    }
    Ok(found.pop())
}

/// Adds receipts of what happened inside calls whose ids begin so, up to two in all: they are looked
/// for at the time that the beginning names.
async fn children(store: &SharedStore, id: &str, found: &mut Vec<ReceiptRow>) -> Result<()> {
    let Some((since, until)) = span(id) else { return Ok(()) };
    let (since, until) = (Some(since), Some(until));
    let mut query = ReceiptQuery { since, until, limit: PAGE, ..ReceiptQuery::default() };
    loop {
        let page = store.query(&query).await?;
        let Some(last) = page.last() else { return Ok(()) };
        query.cursor = Some(last.cursor);
        for row in page {
            if begins(&row, id) {
                found.push(row);
            }
            if found.len() > 1 {
                return Ok(());
            }
        }
    }
}

/// The seconds in which a child's receipt was signed whose id begins so.
fn span(id: &str) -> Option<(u64, u64)> {
    let digits: String = id.strip_prefix(CHILD).unwrap_or(id).replace('-', "");
    let digits = digits.get(..TIME_DIGITS).unwrap_or(&digits);
    let unknown = u32::try_from(TIME_DIGITS.checked_sub(digits.len())?).ok()?.checked_mul(4)?;
    let first = u64::from_str_radix(digits, 16).ok()?.checked_shl(unknown)?;
    let last = first | 1_u64.checked_shl(unknown)?.saturating_sub(1);
    Some(((first / 1000).saturating_sub(SKEW), (last / 1000).saturating_add(SKEW)))
}

fn begins(row: &ReceiptRow, beginning: &str) -> bool {
    // What cannot be read is not what is looked for.
    row::read(row).is_ok_and(|receipt| {
        let id = receipt.id();
        let digits = id.strip_prefix(CHILD);
        digits.is_some_and(|digits| id.starts_with(beginning) || digits.starts_with(beginning))
    })
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn a_beginning_names_the_seconds_in_which_a_child_was_signed() {
        // The example of RFC 9562: 1,645,557,742,000 milliseconds.
        let whole = Some((1_645_557_742 - 60, 1_645_557_742 + 60));
        assert_eq!(span("child-rcpt-017f22e2-79b0-7cc3-98c4-dc0c0c07398f"), whole);
        assert_eq!(span("017f22e2-79b0"), whole);
        let (since, until) = span("017f22e2").unwrap();
        assert!(since <= 1_645_557_742 && 1_645_557_742 <= until && until - since < 200);
        assert_eq!(span("no digits"), None);
    }
}
