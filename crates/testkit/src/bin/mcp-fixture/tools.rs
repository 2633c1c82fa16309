//! The tools: one list, by which they are announced and found.

mod conformance;
mod faults;
mod files;
mod plain;
mod questions;
mod shown;
mod tck;
mod through;

use serde_json::{Value, json};

use crate::call::{Call, Outcome, text};
use crate::session::Session;

/// What a tool does when it is called.
pub(crate) type Run = fn(&Call) -> Outcome;

/// What the annotations of a tool say that it does.
#[derive(Debug, Clone, Copy)]
enum Effects {
    /// It only looks.
    Reads,
    /// It changes something.
    Writes,
    /// It changes something that cannot be brought back.
    Destroys,
    /// It does not say.
    Unsaid,
}

/// One tool.
struct Tool {
    name: &'static str,
    description: &'static str,
    effects: Effects,
    input: fn() -> Value,
    output: Option<fn() -> Value>,
    /// Whether it can run as a task, if it says.
    task_support: Option<&'static str>,
    run: Run,
}

impl Tool {
    const fn new(name: &'static str, description: &'static str, run: Run) -> Self {
        let (effects, input) = (Effects::Reads, no_arguments as fn() -> Value);
        Self { name, description, effects, input, output: None, task_support: None, run }
    }

    const fn with_task(mut self, support: &'static str) -> Self {
        self.task_support = Some(support);
        self
    }

    const fn takes(mut self, input: fn() -> Value) -> Self {
        self.input = input;
        self
    }

    const fn gives(mut self, output: fn() -> Value) -> Self {
        self.output = Some(output);
        self
    }

    const fn with(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    fn announced(&self) -> Value {
        let mut tool = json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": (self.input)(),
        });
        if let Some(members) = tool.as_object_mut() {
            if let Some(output) = self.output {
                members.insert("outputSchema".to_owned(), output());
            }
            if let Some(support) = self.task_support {
                members.insert("execution".to_owned(), json!({"taskSupport": support}));
            }
            if let Some(annotations) = self.effects.annotations() {
                members.insert("annotations".to_owned(), annotations);
            }
        }
        tool
    }
}

impl Effects {
    fn annotations(self) -> Option<Value> {
        match self {
            Self::Reads => Some(json!({"readOnlyHint": true})),
            Self::Writes => Some(json!({"readOnlyHint": false, "destructiveHint": false})),
            Self::Destroys => Some(json!({"readOnlyHint": false, "destructiveHint": true})),
            Self::Unsaid => None,
        }
    }
}

fn no_arguments() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

/// A schema of required arguments, each a name and a JSON type.
fn required(arguments: &[(&str, &str)]) -> Value {
    let properties: serde_json::Map<String, Value> =
        arguments.iter().map(|(name, kind)| ((*name).to_owned(), json!({"type": kind}))).collect();
    let names: Vec<&str> = arguments.iter().map(|(name, _)| *name).collect();
    json!({"type": "object", "properties": properties, "required": names})
}

/// The tools that a session has from the beginning.
fn all(session: &Session) -> impl Iterator<Item = &'static Tool> {
    [conformance::TOOLS, questions::TOOLS, plain::TOOLS, files::TOOLS, faults::TOOLS, tck::TOOLS]
        .into_iter()
        .flatten()
        .filter(|tool| session.only.as_deref().is_none_or(|only| only == tool.name))
        .chain(faults::HIDDEN.iter().chain(shown::HIDDEN).filter(|tool| {
            let also = session.also.as_deref().unwrap_or_default();
            also.split(',').any(|name| name == tool.name)
        }))
        .chain(through::TOOLS.iter().filter(|_| session.also.as_deref() == Some(through::GROUP)))
}

/// All tools, the grown ones last.
pub(crate) fn list(session: &Session) -> Vec<Value> {
    let grown = (1..=session.grown()).map(|number| {
        json!({
            "name": format!("grown_{number}"),
            "description": "A tool that was not there from the beginning.",
            "inputSchema": no_arguments(),
            "annotations": {"readOnlyHint": true},
        })
    });
    all(session).map(Tool::announced).chain(grown).collect()
}

/// The tool of a name.
pub(crate) fn find(session: &Session, name: &str) -> Option<Run> {
    let grown = name.strip_prefix("grown_").and_then(|number| number.parse().ok());
    if grown.is_some_and(|number| (1..=session.grown()).contains(&number)) {
        return Some(|call| Ok(text(format!("This is {}.", call.tool))));
    }
    all(session).find(|tool| tool.name == name).map(|tool| tool.run)
}
