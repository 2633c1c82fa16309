//! What is wrong with arguments, in words that their caller can act on: which member, and what the
//! schema asks for. Never a value.

use chio_core::manifest::ToolDefinition;
use chio_yaml::shortened;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::lenient::types;

/// How many names or values of a schema are repeated.
const MOST_NAMES: usize = 16;
/// How many bytes of what a schema says are repeated.
const MAX_WORDS: usize = 200;

/// Where and what was expected.
pub(super) fn in_words(error: &ValidationError<'_>, tool: Option<&ToolDefinition>) -> String {
    let path = error.instance_path().as_str();
    let expected = expected(error, path.is_empty().then_some(tool).flatten());
    if path.is_empty() { expected } else { format!("`{}`: {expected}", shown(path)) }
}

fn expected(error: &ValidationError<'_>, tool: Option<&ToolDefinition>) -> String {
    let keyword = error.kind().keyword();
    let asked = match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            return format!("expected `{}`, found none", shown(name));
        }
        Kind::Type { kind } => {
            let names: Vec<String> = types(kind).iter().map(|kind| kind.to_string()).collect();
            return format!("expected {}, found {}", names.join(" or "), kind_of(error.instance()));
        }
        Kind::AdditionalProperties { .. } => {
            let known = known_members(tool);
            let names = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return format!("expected no other members than {names}");
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let mut ways: Vec<String> = Vec::new();
            for error in context.iter().filter_map(|branch| branch.first()).take(MOST_NAMES) {
                let words = in_words(error, None);
                if !ways.contains(&words) {
                    ways.push(words);
                }
            }
            return shortened(
                &format!("expected one of several forms: {}", ways.join("; or ")),
                MAX_WORDS,
            );
        }
        Kind::Enum { options } => format!("one of {}", several(options)),
        Kind::Constant { expected_value } => several(expected_value),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MinLength { limit } => format!("at least {limit} characters"),
        Kind::MaxLength { limit } => format!("at most {limit} characters"),
        Kind::MinItems { limit } => format!("at least {limit} items"),
        Kind::MaxItems { limit } => format!("at most {limit} items"),
        Kind::MinProperties { limit } => format!("at least {limit} members"),
        Kind::MaxProperties { limit } => format!("at most {limit} members"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::Pattern { pattern } => format!("text of the pattern `{}`", shown(pattern)),
        Kind::Format { format } => format!("the format `{}`", shown(format)),
        Kind::UniqueItems => "each item once".to_owned(),
        _ => return format!("`{keyword}` of the schema does not hold"),
    };
    format!("expected {asked} (`{keyword}`)")
}

/// Values of a schema, as JSON.
fn several(values: &Value) -> String {
    let text = match values {
        Value::Array(values) => {
            let values: Vec<String> =
                values.iter().take(MOST_NAMES).map(Value::to_string).collect();
            values.join(", ")
        }
        one => one.to_string(),
    };
    shortened(&text, MAX_WORDS)
}

const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The members that a tool's schema knows, as its server publishes them.
fn known_members(tool: Option<&ToolDefinition>) -> Vec<String> {
    let known = tool.and_then(|tool| tool.input_schema.get("properties")?.as_object());
    let names = known.into_iter().flat_map(|known| known.keys().take(MOST_NAMES));
    names.map(|name| format!("`{}`", shown(name))).collect()
}

/// A place or a name as a reason may repeat it: short and printable.
pub(super) fn shown(text: &str) -> String {
    shortened(if text.is_empty() { "/" } else { text }, 80)
}
