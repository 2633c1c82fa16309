//! What servers commonly take although their schema, at its word, does not: whether they do is left
//! to them.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::types::{JsonType, JsonTypeSet};
use serde_json::Value;

/// Whether the server may be asked in spite of this.
pub(super) fn is_forgiven(error: &ValidationError<'_>) -> bool {
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { .. }
        | ValidationErrorKind::UnevaluatedProperties { .. } => true,
        ValidationErrorKind::Type { kind } => {
            let is_member = !error.instance_path().as_str().is_empty();
            is_member && reads_as(error.instance(), types(kind))
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().any(|branch| branch.iter().all(is_forgiven))
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

/// Whether a value is another way to write one of these types. A text is never read as a list or an
/// object: guards would see less of it than its server.
fn reads_as(value: &Value, types: JsonTypeSet) -> bool {
    let asks = |kind| types.contains(kind);
    match value {
        // Of a member that need not be there.
        Value::Null => true,
        Value::String(text) => {
            let text = text.trim();
            (asks(JsonType::Integer) && text.parse::<i128>().is_ok())
                || (asks(JsonType::Number) && text.parse::<f64>().is_ok_and(f64::is_finite))
                || (asks(JsonType::Boolean) && matches!(text, "true" | "false" | "True" | "False"))
        }
        Value::Number(number) => {
            asks(JsonType::String)
                || (asks(JsonType::Boolean) && matches!(number.as_u64(), Some(0 | 1)))
        }
        Value::Bool(_) => asks(JsonType::String),
        Value::Array(_) | Value::Object(_) => false,
    }
}
