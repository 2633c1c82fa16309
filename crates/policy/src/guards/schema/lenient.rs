//! What servers commonly take although their schema, at its word, does not: whether they do is left
//! to them. What is another way to write a value is held against the schema as that value, so that
//! nothing else that the schema says is gone around by it.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::types::{JsonType, JsonTypeSet};
use serde_json::{Number, Value};

/// Values by their places, as JSON pointers.
type Readings = Vec<(String, Value)>;

/// The arguments as a server takes them that reads values of other types; none where there are none.
pub(super) fn as_read<'e>(
    arguments: &Value,
    errors: impl Iterator<Item = ValidationError<'e>>,
) -> Option<Value> {
    let mut readings = Readings::new();
    for error in errors {
        explained(&error, &mut readings);
    }
    let mut read = (!readings.is_empty()).then(|| arguments.clone())?;
    for (place, value) in readings {
        if let Some(found) = read.pointer_mut(&place) {
            *found = value;
        }
    }
    Some(read)
}

/// Whether the server may be asked in spite of this.
pub(super) fn is_forgiven(error: &ValidationError<'_>) -> bool {
    let mut readings = Readings::new();
    explained(error, &mut readings) && readings.is_empty()
}

/// Whether that is all that is wrong where the error is. Adds how values of other types are read.
fn explained(error: &ValidationError<'_>, readings: &mut Readings) -> bool {
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { .. }
        | ValidationErrorKind::UnevaluatedProperties { .. } => true,
        ValidationErrorKind::Type { kind } => {
            let (place, value) = (error.instance_path().as_str(), error.instance());
            if place.is_empty() {
                return false;
            }
            // Of a member that need not be there.
            if value.is_null() {
                return true;
            }
            let read = reading(value, types(kind));
            read.map(|read| readings.push((place.to_owned(), read))).is_some()
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().any(|branch| {
                let mut of_branch = Readings::new();
                let all = branch.iter().all(|error| explained(error, &mut of_branch));
                if all {
                    readings.append(&mut of_branch);
                }
                all
            })
        }
        _ => false,
    }
}

/// The types that were asked for.
pub(super) fn types(kind: &TypeKind) -> JsonTypeSet {
    match kind {
        TypeKind::Single(kind) => JsonTypeSet::from(*kind),
        TypeKind::Multiple(kinds) => *kinds,
    }
}

/// The value of one of these types that another may stand for. A text is never read as a list or an
/// object: guards would see less of it than its server.
fn reading(value: &Value, types: JsonTypeSet) -> Option<Value> {
    let asks = |kind| types.contains(kind);
    let numeric = asks(JsonType::Integer) || asks(JsonType::Number);
    match value {
        Value::String(text) => {
            let text = text.trim();
            let number = || number(text, asks(JsonType::Number));
            let truth = || match text {
                "true" | "True" => Some(Value::Bool(true)),
                "false" | "False" => Some(Value::Bool(false)),
                _ => None,
            };
            let number = numeric.then(number).flatten().map(Value::Number);
            number.or_else(|| asks(JsonType::Boolean).then(truth).flatten())
        }
        Value::Number(number) if asks(JsonType::Boolean) && !asks(JsonType::String) => {
            number.as_u64().filter(|it| *it <= 1).map(|it| Value::Bool(it == 1))
        }
        Value::Number(_) | Value::Bool(_) => {
            asks(JsonType::String).then(|| Value::String(value.to_string()))
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The number that a text writes; one with a fraction where that is asked for.
fn number(text: &str, fractions: bool) -> Option<Number> {
    let exact =
        text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
    let rounded = || {
        let is_number = fractions || text.parse::<i128>().is_ok();
        is_number.then(|| text.parse().ok()).flatten().and_then(Number::from_f64)
    };
    exact.ok().or_else(rounded)
}
