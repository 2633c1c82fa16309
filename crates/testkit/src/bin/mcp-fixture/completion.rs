//! Completion of what a user has begun to type.

use serde_json::{Value, json};

use crate::rpc::{Fault, INVALID_PARAMS, text};
use crate::{prompts, resources};

const WORDS: [&str; 4] = ["paris", "park", "party", "test"];
const IDS: [&str; 3] = ["1", "12", "123"];

/// The known values that begin with what was typed.
pub(crate) fn complete(params: &Value) -> Result<Value, Fault> {
    let part = |name: &str| params.get(name).unwrap_or(&Value::Null);
    let (reference, argument) = (part("ref"), part("argument"));
    let known: &[&str] = match text(reference, "type")? {
        "ref/prompt" if text(reference, "name")? == prompts::WITH_ARGUMENTS => &WORDS,
        "ref/resource" if text(reference, "uri")? == resources::TEMPLATE => &IDS,
        _ => return Err(Fault::new(INVALID_PARAMS, "expected a prompt or a template of ours")),
    };
    text(argument, "name")?;
    let typed = text(argument, "value")?;
    let values: Vec<&str> = known.iter().copied().filter(|it| it.starts_with(typed)).collect();
    let total = values.len();
    Ok(json!({"completion": {"values": values, "total": total, "hasMore": false}}))
}
