//! Arguments against the schema that the tool's server publishes.

mod cost;
mod lenient;
mod words;

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::canonical;
use chio_core::manifest::ToolDefinition;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Spent, Verdict, Work};
use chio_yaml::{Key, Section};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

use self::cost::{Graph, MAX_BACKTRACKS, MAX_PATTERN, Unbounded};
use self::lenient::{as_read, is_forgiven};
use self::words::{in_words, shown};
use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;
use crate::tool_cache::ToolCache;

/// How large a schema may be, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// How much longer it takes to tell what is wrong with a value than that something is.
const TELLING: u64 = 8;
/// Why a call of a tool without a schema is denied.
const MISSING: &str = "`on_missing`: the tool has no schema for its arguments";
/// What our own extensions begin with.
const EXTENSION: &str = "x-chio-";

pub(crate) const KIND: GuardKind = GuardKind {
    name: "argument-schema",
    section: "chio.schema",
    about: "Holds arguments against the input schema that the tool's server publishes. The caller \
            is told which member is wrong and what the schema expects. A schema that cannot be \
            used, that refers to another document, or that takes too many steps to hold these \
            arguments against, denies; a tool that every call is denied of for its schema is not \
            listed. It is always there.",
    keys: &[
        Key::ENABLED,
        Key::new(
            "mode",
            "`lenient` or `strict`",
            "lenient",
            "`lenient` leaves to the server what many take: members that the schema does not know, \
             `\"7\"` for a number, a number for text, `null`",
        ),
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
    let lenient = section.one_of("mode", &[("lenient", true), ("strict", false)]).unwrap_or(true);
    let guard = ArgumentSchema { deny_missing, lenient, compiled: ToolCache::new() };
    Some(Built { guard: Arc::new(guard), forbidden: Some(forbidden()) })
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
    /// Whether the server is asked where many would take what their schema does not.
    lenient: bool,
    compiled: ToolCache<Compiled>,
}

impl ArgumentSchema {
    fn verdict(&self, input: &GuardInput<'_>) -> Result<Verdict, String> {
        let Some(schema) = input.tool.and_then(schema_of) else {
            return Ok(match self.deny_missing {
                true => Verdict::Deny(MISSING.to_owned()),
                false => Verdict::Allow,
            });
        };
        let compiled = self.compiled(input.server_id, input.tool_name, schema, input.work);
        let compiled = compiled.map_err(|spent| spent.to_string())?;
        match &compiled.validator {
            Ok((graph, validator)) => self.fits(graph, validator, input),
            Err(why) => Ok(unusable(why)),
        }
    }

    fn compiled(
        &self,
        server: &str,
        tool: &str,
        schema: &Map<String, Value>,
        work: &Work,
    ) -> Result<Arc<Compiled>, Spent> {
        // A server may publish another schema under the same name at any time.
        let is_current = |compiled: &Compiled| compiled.schema == *schema;
        let make = || Ok(Compiled { schema: schema.clone(), validator: compile(schema, work)? });
        self.compiled.get_or_make(server, tool, is_current, make)
    }

    /// Whether arguments fit, after what that takes was charged.
    fn fits(
        &self,
        graph: &Graph,
        validator: &Validator,
        input: &GuardInput<'_>,
    ) -> Result<Verdict, String> {
        let too_deep = || Ok(unusable("its parts lie too deep in each other"));
        let steps = match graph.steps(input.arguments, input.argument_bytes, input.work) {
            Ok(steps) => steps,
            Err(Unbounded::TooDeep) => return too_deep(),
            Err(Unbounded::Spent) => return Err(Spent.to_string()),
        };
        let charge =
            |steps: u64| input.work.charge(steps).map_err(|spent: Spent| spent.to_string());
        charge(steps)?;
        if validator.is_valid(input.arguments) {
            return Ok(Verdict::Allow);
        }
        charge(steps.saturating_mul(TELLING))?;
        let mut read = None;
        if self.lenient {
            charge(steps.saturating_mul(TELLING))?;
            read = as_read(input.arguments, validator.iter_errors(input.arguments));
        }
        if let Some(read) = &read {
            // A number that is read as text may meet patterns that it did not meet before.
            let bytes = canonical::size(read).map_or(usize::MAX, |size| size.bytes);
            match graph.steps(read, bytes, input.work) {
                Ok(steps) => charge(steps.saturating_mul(TELLING))?,
                Err(Unbounded::TooDeep) => return too_deep(),
                Err(Unbounded::Spent) => return Err(Spent.to_string()),
            }
        }
        let mut errors = validator.iter_errors(read.as_ref().unwrap_or(input.arguments)).peekable();
        let is_told = errors.peek().is_some() || read.is_some();
        let mut wrong = errors.filter(|error| !(self.lenient && is_forgiven(error)));
        let why = match wrong.next() {
            None if is_told => return Ok(Verdict::Allow),
            None => "it does not say which of them".to_owned(),
            Some(error) => in_words(&error, input.tool),
        };
        Ok(Verdict::WrongArguments(format!("the arguments do not fit the tool's schema: {why}")))
    }
}

#[async_trait]
impl Guard for ArgumentSchema {
    fn name(&self) -> &str {
        KIND.name
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        self.verdict(input).map(Into::into)
    }

    fn unusable(&self, server_id: &str, tool: &ToolDefinition, work: &Work) -> Option<String> {
        let Some(schema) = schema_of(tool) else {
            return self.deny_missing.then(|| MISSING.to_owned());
        };
        let compiled = self.compiled(server_id, &tool.name, schema, work).ok()?;
        compiled.validator.as_ref().err().map(|why| words_of_unusable(why))
    }
}

/// The schema of a tool, where it says anything.
fn schema_of(tool: &ToolDefinition) -> Option<&Map<String, Value>> {
    let schema = &tool.input_schema;
    schema.keys().any(|it| !it.starts_with(EXTENSION)).then_some(schema)
}

fn words_of_unusable(why: &str) -> String {
    format!("the tool's input schema cannot be used: {why}")
}

fn unusable(why: &str) -> Verdict {
    Verdict::Deny(words_of_unusable(why))
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
