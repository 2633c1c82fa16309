//! The strings and members inside a call's arguments.

use serde_json::Value;

/// A string somewhere in the arguments.
pub(super) struct Leaf<'a> {
    /// The nearest member name above it; elements of arrays inherit the array's.
    pub(super) key: Option<&'a str>,
    /// The string.
    pub(super) text: &'a str,
}

/// All strings, in order.
pub(super) fn string_leaves(value: &Value) -> Vec<Leaf<'_>> {
    let mut found = Vec::new();
    collect_leaves(None, value, &mut found);
    found
}

fn collect_leaves<'a>(key: Option<&'a str>, value: &'a Value, found: &mut Vec<Leaf<'a>>) {
    match value {
        Value::String(text) => found.push(Leaf { key, text }),
        Value::Array(items) => items.iter().for_each(|item| collect_leaves(key, item, found)),
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| collect_leaves(Some(name), value, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// All members of all objects, in order.
pub(super) fn members(value: &Value) -> Vec<(&str, &Value)> {
    let mut found = Vec::new();
    collect_members(value, &mut found);
    found
}

fn collect_members<'a>(value: &'a Value, found: &mut Vec<(&'a str, &'a Value)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_members(item, found)),
        Value::Object(members) => {
            for (name, value) in members {
                found.push((name, value));
                collect_members(value, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Collects a string, or the strings of nested arrays; false when anything else is in there.
pub(super) fn only_strings<'a>(value: &'a Value, found: &mut Vec<&'a str>) -> bool {
    match value {
        Value::String(text) => {
            found.push(text);
            true
        }
        Value::Array(items) => items.iter().all(|item| only_strings(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}
