//! Example calls with the decision that a policy is expected to make.
//!
//! The same format serves the samples of guards, the corpora of `spec/vectors/policy`, and the
//! files for `chio policy test`.

use chio_core::calendar::parse_utc;
use chio_core::crypto::Keypair;
use chio_core::fidelity::BridgeFidelity;
use chio_core::governance::ModelMetadata;
use chio_core::hash::sha256;
use chio_core::manifest::ToolDefinition;
use chio_core::money::MonetaryAmount;
use chio_yaml::{Key, Node, NodeKind, Place, Problem, Problems, Section, parse};
use serde_json::{Map, Value};

use crate::document::words;
use crate::example::ExampleCall;
use crate::judge::Decision;

/// How often one case may be asked.
const MAX_REPEAT: u64 = 100_000;
/// How often a token may have been delegated.
const MAX_DEPTH: u64 = 64;

/// A call with what is expected to come of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it is about; by default its number and its tool.
    pub name: String,
    /// The call.
    pub call: ExampleCall,
    /// What is expected.
    pub expect: Decision,
    /// The guard that is expected to decide; none for any guard.
    pub by: Option<String>,
    /// A part of the expected reason.
    pub says: Option<String>,
    /// How often the call is made; the last answer counts.
    pub repeat: u64,
    /// Its location.
    pub place: Place,
}

/// A file of cases.
#[derive(Debug, Clone)]
pub struct Cases {
    /// The document under test: a document, or the name of one.
    pub policy: Option<Node>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// What a file of cases may have.
pub const FILE_KEYS: &[Key] = &[
    Key::new("policy", "a policy, or the name of one", "none", "the document under test"),
    Key::new("cases", "a list of cases", "none", "the calls"),
];

/// What a case may have.
pub const CASE_KEYS: &[Key] = &[
    Key::new("name", "text", "its number", "what the case is about"),
    Key::new("tool", "text", "required", "the tool that is called"),
    Key::new("server", "text", "example", "the server that has the tool"),
    Key::new("args", "any value", "{}", "the arguments"),
    Key::new("expect", "`allow`, `deny`, `ask` or `redact`", "required", "what comes of it"),
    Key::new("by", "the name of a guard", "any", "which guard says so"),
    Key::new("says", "text", "anything", "a part of the reason"),
    Key::new("output", "any value", "none", "what the tool answers"),
    Key::new("protocol", "a protocol", "native", "what the caller speaks"),
    Key::new("target", "a protocol", "native", "what the tool is addressed as"),
    Key::new("fidelity", "`lossless`, `adapted` or `unsupported`", "lossless", "how well it fits"),
    Key::new("depth", "a whole number", "0", "how often the token was handed on"),
    Key::new("model", "a map", "none", "the model that asks"),
    Key::new("cost", "a map of `units` and `currency`", "none", "what the call costs"),
    Key::new("schema", "a JSON Schema", "none", "the schema of the tool's arguments"),
    Key::flag("side_effects", "false", "whether the tool is published as having any"),
    Key::new("at", "a time", "2026-09-24T12:00:00Z", "when the call is made"),
    Key::new("agent", "text", "agent", "who calls; every name is another subject"),
    Key::new("session", "text", "session-example", "the session"),
    Key::new("repeat", "a whole number", "1", "how often; the last answer counts"),
];

const MODEL_KEYS: &[Key] = &[
    Key::new("model_id", "text", "required", "the model's name"),
    Key::new("provider", "text", "none", "who runs it"),
    Key::new("safety_tier", "a tier", "none", "how careful it is known to be"),
    Key::new("provenance_class", "`asserted` or `verified`", "asserted", "how far that is known"),
];

const COST_KEYS: &[Key] = &[
    Key::new("units", "a whole number", "required", "minor units, such as cents"),
    Key::new("currency", "text", "required", "the currency's code"),
];

/// Reads a file of cases.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(text: &str, file: &str) -> Result<Cases, Vec<Problem>> {
    let root = parse(text, file)?;
    let problems = Problems::default();
    let section = Section::new(&root, "", FILE_KEYS, &problems);
    let cases = cases_of(&section);
    if problems.is_empty() && cases.is_empty() {
        section.problem("cases", "expected at least one case, each after `- `, found none");
    }
    let policy = section.node("policy").cloned();
    let wrong =
        policy.as_ref().filter(|it| !matches!(it.kind, NodeKind::Map(_) | NodeKind::Text(_)));
    if let Some(wrong) = wrong {
        let found = wrong.found();
        section.problem("policy", &format!("expected a policy, or the name of one, found {found}"));
    }
    if problems.is_empty() {
        return Ok(Cases { policy, cases });
    }
    Err(problems.into_sorted())
}

fn cases_of(section: &Section<'_>) -> Vec<Case> {
    let sections = section.sections("cases", CASE_KEYS);
    let sections = sections.iter().enumerate();
    sections.filter_map(|(number, section)| case_of(section, number + 1)).collect()
}

fn case_of(section: &Section<'_>, number: usize) -> Option<Case> {
    let tool = required(section, "tool", section.text("tool").map(|item| item.text));
    let expect = required(section, "expect", section.one_of("expect", &words()));
    let arguments = section.node("args").map_or_else(|| Value::Object(Map::new()), Node::to_value);
    let mut call = ExampleCall::new(tool.unwrap_or_default(), arguments);
    fill(&mut call, section);
    let depth = section.number("depth", 0..=MAX_DEPTH).unwrap_or_default();
    let call = call.at_depth(usize::try_from(depth).unwrap_or_default());
    let own = |key: &str| section.text(key).map(|item| item.text.to_owned());
    let name = own("name").unwrap_or_else(|| format!("case {number}: {}", call.tool_name));
    Some(Case {
        name,
        expect: expect?,
        by: own("by"),
        says: own("says"),
        repeat: section.number("repeat", 1..=MAX_REPEAT).unwrap_or(1),
        place: section.place().clone(),
        call: tool.map(|_| call)?,
    })
}

/// Notes that a member is missing, unless it is there and something else is wrong with it.
fn required<T>(section: &Section<'_>, key: &str, value: Option<T>) -> Option<T> {
    if value.is_none() && !section.has(key) {
        section.problem_at(section.place(), &format!("`{key}` is missing"));
    }
    value
}

/// What a case may say about its call, beyond tool and arguments.
fn fill(call: &mut ExampleCall, section: &Section<'_>) {
    if let Some(server) = section.text("server") {
        server.text.clone_into(&mut call.server_id);
    }
    if let Some(session) = section.text("session") {
        session.text.clone_into(&mut call.session.id);
    }
    let protocol = section.one_of("protocol", &words());
    call.session.protocol = protocol.unwrap_or(call.session.protocol);
    call.target = section.one_of("target", &words()).unwrap_or(call.target);
    call.fidelity = fidelity(section).or(call.fidelity.take());
    let agent = section.text("agent").map_or("agent", |item| item.text);
    call.token.subject = Keypair::from_seed(&sha256(agent.as_bytes())).public_key().clone();
    call.model = section.section("model", MODEL_KEYS).and_then(|model| model_of(&model));
    call.cost = section.section("cost", COST_KEYS).and_then(|cost| cost_of(&cost));
    call.tool = tool_of(section, &call.tool_name);
    call.output = section.node("output").map(Node::to_value);
    call.now = time_of(section).unwrap_or(call.now);
}

fn fidelity(section: &Section<'_>) -> Option<BridgeFidelity> {
    let words = [("lossless", 0), ("adapted", 1), ("unsupported", 2)];
    Some(match section.one_of("fidelity", &words)? {
        0 => BridgeFidelity::Lossless,
        1 => BridgeFidelity::Adapted { caveats: vec!["as the case says".to_owned()] },
        _ => BridgeFidelity::Unsupported { reason: "as the case says".to_owned() },
    })
}

fn model_of(section: &Section<'_>) -> Option<ModelMetadata> {
    let model_id = required(section, "model_id", section.text("model_id"));
    let provider = section.text("provider").map(|item| item.text.to_owned());
    let safety_tier = section.one_of("safety_tier", &words());
    let provenance_class = section.one_of("provenance_class", &words()).unwrap_or_default();
    let model_id = model_id?.text.to_owned();
    Some(ModelMetadata { model_id, safety_tier, provider, provenance_class })
}

fn cost_of(section: &Section<'_>) -> Option<MonetaryAmount> {
    let most = u64::try_from(i64::MAX).unwrap_or_default();
    let units = required(section, "units", section.number("units", 0..=most));
    let currency = required(section, "currency", section.text("currency"));
    Some(MonetaryAmount::new(units?, currency?.text))
}

/// The tool as its server publishes it, where the case says anything about that.
fn tool_of(section: &Section<'_>, tool_name: &str) -> Option<ToolDefinition> {
    let input_schema = match section.node("schema").map(Node::to_value) {
        Some(Value::Object(schema)) => schema,
        Some(_) => {
            let found = section.node("schema").map_or("nothing", Node::found);
            section.problem("schema", &format!("expected a JSON Schema (a map), found {found}"));
            return None;
        }
        None if section.has("side_effects") => Map::new(),
        None => return None,
    };
    let has_side_effects = section.flag("side_effects", false);
    Some(ToolDefinition {
        has_side_effects,
        ..plain_tool(tool_name, "as the case says", input_schema)
    })
}

/// A tool of which nothing is known but this.
pub fn plain_tool(name: &str, about: &str, input_schema: Map<String, Value>) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: about.to_owned(),
        input_schema,
        output_schema: None,
        pricing: None,
        has_side_effects: false,
        latency_hint: None,
    }
}

fn time_of(section: &Section<'_>) -> Option<u64> {
    let node = section.node("at")?;
    let seconds = match &node.kind {
        NodeKind::Integer(seconds) => u64::try_from(*seconds).ok(),
        NodeKind::Text(text) => parse_utc(text),
        _ => None,
    };
    if seconds.is_none() {
        let expected = "expected a time such as `2026-09-24T12:00:00Z`, or Unix seconds";
        section.problem("at", &format!("{expected}, found {}", node.found()));
    }
    seconds
}
