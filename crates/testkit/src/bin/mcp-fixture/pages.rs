//! Lists, in one piece or in pages.

use serde_json::{Value, json};

use crate::rpc::{Fault, INVALID_PARAMS};

/// The part of a list that the cursor among the parameters asks for.
pub(crate) fn page(
    member: &str,
    items: Vec<Value>,
    params: &Value,
    size: Option<usize>,
) -> Result<Value, Fault> {
    let Some(size) = size else { return Ok(json!({member: items})) };
    let start = start(params.get("cursor"), items.len())?;
    let end = start.saturating_add(size);
    let more = end < items.len();
    let part: Vec<Value> = items.into_iter().skip(start).take(size).collect();
    Ok(if more {
        json!({member: part, "nextCursor": format!("from-{end}")})
    } else {
        json!({member: part})
    })
}

fn start(cursor: Option<&Value>, length: usize) -> Result<usize, Fault> {
    let Some(cursor) = cursor else { return Ok(0) };
    let number = cursor.as_str().and_then(|cursor| cursor.strip_prefix("from-"));
    let start = number.and_then(|number| number.parse().ok()).filter(|start| *start < length);
    start.ok_or_else(|| Fault::new(INVALID_PARAMS, "expected a cursor that came with a page"))
}
