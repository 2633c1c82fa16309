//! Arguments against the schema that the tool's server publishes.

mod cost;

use chio_core::manifest::ToolDefinition;
use chio_kernel::{GuardInput, Spent, Verdict, Work};
use chio_yaml::{Key, Section, shortened};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};

use self::cost::{Graph, MAX_BACKTRACKS, MAX_PATTERN, Unbounded};
use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;
use crate::tool_cache::ToolCache;

/// How large a schema may be, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// How much longer it takes to tell what is wrong with a value than that something is.
const TELLING: u64 = 8;
/// What our own extensions begin with.
const EXTENSION: &str = "x-chio-";

pub(crate) const KIND: GuardKind = GuardKind {
    name: "argument-schema",
    section: "chio.schema",
    about: "Holds arguments against the input schema that the tool's server publishes. A schema \
            that cannot be used, that refers to another document, or that takes too many steps to \
            hold these arguments against, denies. It is always there.",
    keys: &[
        Key::ENABLED,
        Key::new(
            "on_missing",
            "`allow` or `deny`",
            "allow",
            "what becomes of calls of tools without a schema",
        ),
    ],
    always: true,
    build,
};

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    section.enabled(true)?;
    let deny_missing =
        section.one_of("on_missing", &[("allow", false), ("deny", true)]).unwrap_or(false);
    let guard = ArgumentSchema { deny_missing, compiled: ToolCache::new() };
    Some(Built::deciding(KIND.name, Some(forbidden()), move |input| guard.verdict(input)))
}

fn forbidden() -> ExampleCall {
    let mut call = ExampleCall::new("example", json!({}));
    let schema = [("required".to_owned(), json!(["path"]))];
    call.tool = Some(ToolDefinition {
        name: "example".to_owned(),
        description: String::new(),
        input_schema: schema.into_iter().collect(),
        output_schema: None,
        pricing: None,
        has_side_effects: false,
        latency_hint: None,
    });
    call
}

/// A schema and what became of it.
struct Compiled {
    schema: Map<String, Value>,
    validator: Result<(Graph, Validator), String>,
}

struct ArgumentSchema {
    deny_missing: bool,
    compiled: ToolCache<Compiled>,
}

impl ArgumentSchema {
    fn verdict(&self, input: &GuardInput<'_>) -> Result<Verdict, String> {
        let schema = input.tool.map(|tool| &tool.input_schema);
        let says =
            |schema: &&Map<String, Value>| schema.keys().any(|it| !it.starts_with(EXTENSION));
        let Some(schema) = schema.filter(says) else {
            return Ok(if self.deny_missing {
                Verdict::Deny("`on_missing`: the tool has no schema for its arguments".to_owned())
            } else {
                Verdict::Allow
            });
        };
        let (server, tool) = (input.server_id, input.tool_name);
        // A server may publish another schema under the same name at any time.
        let is_current = |compiled: &Compiled| compiled.schema == *schema;
        let make = || {
            let validator = compile(schema, input.work)?;
            Ok::<_, Spent>(Compiled { schema: schema.clone(), validator })
        };
        let compiled = self.compiled.get_or_make(server, tool, is_current, make);
        let compiled = compiled.map_err(|spent| spent.to_string())?;
        match &compiled.validator {
            Ok((graph, validator)) => fits(graph, validator, input),
            Err(why) => Ok(unusable(why)),
        }
    }
}

fn unusable(why: &str) -> Verdict {
    Verdict::Deny(format!("the tool's input schema cannot be used: {why}"))
}

/// Whether arguments fit, after what that takes was charged.
fn fits(graph: &Graph, validator: &Validator, input: &GuardInput<'_>) -> Result<Verdict, String> {
    let steps = match graph.steps(input.arguments, input.argument_bytes, input.work) {
        Ok(steps) => steps,
        Err(Unbounded::TooDeep) => return Ok(unusable("its parts lie too deep in each other")),
        Err(Unbounded::Spent) => return Err(Spent.to_string()),
    };
    input.work.charge(steps).map_err(|spent| spent.to_string())?;
    if validator.is_valid(input.arguments) {
        return Ok(Verdict::Allow);
    }
    input.work.charge(steps.saturating_mul(TELLING)).map_err(|spent| spent.to_string())?;
    let error = validator.validate(input.arguments).err();
    let known = input.tool.map(known_members).unwrap_or_default();
    let why = error.map_or_else(|| "it does not fit".to_owned(), |it| in_words(&it, &known));
    Ok(Verdict::Deny(format!("the arguments do not fit the tool's schema: {why}")))
}

/// Makes a schema ready, after what that takes was charged. It never fetches anything.
fn compile(
    schema: &Map<String, Value>,
    work: &Work,
) -> Result<Result<(Graph, Validator), String>, Spent> {
    let bytes = serde_json::to_string(schema).map_or(usize::MAX, |text| text.len());
    if bytes > MAX_BYTES {
        return Ok(Err("it is too large".to_owned()));
    }
    work.charge_each(bytes, 1)?;
    let schema = Value::Object(schema.clone());
    let graph = match Graph::of(&schema) {
        Ok(graph) => graph,
        Err(why) => return Ok(Err(why.to_owned())),
    };
    work.charge_each(graph.len(), 512)?;
    Ok(built(&schema).map(|validator| (graph, validator)))
}

fn built(schema: &Value) -> Result<Validator, String> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKS)
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN);
    let options = jsonschema::options().offline().with_pattern_options(patterns);
    options.build(schema).map_err(|error| match error.kind() {
        ValidationErrorKind::Referencing(_) => "it refers to what is not within it".to_owned(),
        _ => {
            let place = shown(error.instance_path().as_str());
            format!("`{place}` breaks `{}` of JSON Schema itself", error.kind().keyword())
        }
    })
}

/// Where and which rule, never a value.
fn in_words(error: &ValidationError<'_>, known: &[&str]) -> String {
    let path = error.instance_path().as_str();
    let place = shown(path);
    let keyword = error.kind().keyword();
    let asks = match error.kind() {
        ValidationErrorKind::Required { property } => {
            property.as_str().map(|name| format!("`{}`", shown(name)))
        }
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => Some(kind.to_string()),
        ValidationErrorKind::AdditionalProperties { .. } if path.is_empty() => {
            let names: Vec<String> =
                known.iter().map(|name| format!("`{}`", shown(name))).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Some(format!("no other members than {names}"))
        }
        _ => None,
    };
    let asks = asks.map(|asks| format!(", which asks for {asks}")).unwrap_or_default();
    if path.is_empty() {
        return format!("they break `{keyword}`{asks}");
    }
    format!("`{place}` breaks `{keyword}`{asks}")
}

/// The members that a tool's schema knows, as its server publishes them.
fn known_members(tool: &ToolDefinition) -> Vec<&str> {
    let known = tool.input_schema.get("properties").and_then(Value::as_object);
    known.into_iter().flat_map(|known| known.keys().take(16).map(String::as_str)).collect()
}

/// A place as a reason may repeat it: short and printable.
fn shown(text: &str) -> String {
    shortened(if text.is_empty() { "/" } else { text }, 80)
}
