//! Every small change to a JSON object: what a verifier must notice.

use serde_json::{Number, Value};

/// One changed copy and what was done to it.
#[derive(Debug, Clone)]
pub struct Tampered {
    /// What was done, and where.
    pub what: String,
    /// The changed copy.
    pub value: Value,
}

/// Every copy of `value` with one scalar changed, one member dropped or one element dropped or
/// doubled.
#[must_use]
pub fn changes(value: &Value) -> Vec<Tampered> {
    let mut found = Vec::new();
    for pointer in pointers(value) {
        let at = |what: &str| format!("{what} {pointer}");
        if let Some(replacement) = value.pointer(&pointer).and_then(replacement) {
            let mut copy = value.clone();
            if let Some(place) = copy.pointer_mut(&pointer) {
                *place = replacement;
            }
            found.push(Tampered { what: at("changed"), value: copy });
        }
        let Some((parent, name)) = pointer.rsplit_once('/') else { continue };
        let mut dropped = value.clone();
        match dropped.pointer_mut(parent) {
            Some(Value::Object(members)) => {
                members.remove(&unescape(name));
            }
            Some(Value::Array(elements)) => {
                let Ok(index) = name.parse::<usize>() else { continue };
                elements.remove(index);
                let mut doubled = value.clone();
                if let Some(Value::Array(elements)) = doubled.pointer_mut(parent) {
                    let again = elements.get(index).cloned().unwrap_or_default();
                    elements.insert(index, again);
                }
                found.push(Tampered { what: at("doubled"), value: doubled });
            }
            _ => continue,
        }
        found.push(Tampered { what: at("dropped"), value: dropped });
    }
    found
}

/// Another value of the same kind; for hex, with one bit flipped somewhere in the middle.
fn replacement(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Null => Value::Bool(false),
        Value::Bool(flag) => Value::Bool(!flag),
        Value::Number(number) => match number.as_u64() {
            Some(number) => Value::from(number ^ 1),
            None => Value::Number(Number::from(7)),
        },
        Value::String(text) => Value::String(change_text(text)),
        Value::Array(_) | Value::Object(_) => return None,
    })
}

fn change_text(text: &str) -> String {
    let middle = text.len() / 2;
    let is_hex =
        text.len() >= 16 && text.trim_start_matches("0x").bytes().all(|b| b.is_ascii_hexdigit());
    if !is_hex {
        return format!("{text}x");
    }
    let flip = |digit: char| match digit.to_digit(16) {
        Some(value) => char::from_digit(value ^ 1, 16).unwrap_or(digit),
        None => digit,
    };
    text.char_indices().map(|(i, c)| if i == middle { flip(c) } else { c }).collect()
}

/// JSON pointers to everything inside a value.
fn pointers(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((pointer, value)) = open.pop() {
        match value {
            Value::Object(members) => open.extend(
                members.iter().map(|(name, value)| (format!("{pointer}/{}", escape(name)), value)),
            ),
            Value::Array(elements) => open.extend(
                elements.iter().enumerate().map(|(i, value)| (format!("{pointer}/{i}"), value)),
            ),
            _ => {}
        }
        if !pointer.is_empty() {
            found.push(pointer);
        }
    }
    found
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescape(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}
