//! The tree that a document stands for, with the place of everything in it.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

/// A location in a document: file, line and column, both from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, or the name of a built-in document.
    pub file: Arc<str>,
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The name of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Its location.
    pub place: Place,
}

/// A value of the document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// The value.
    pub kind: NodeKind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// Nothing.
    Null,
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// Text.
    Text(String),
    /// Values in order.
    List(Vec<Node>),
    /// Named values, in the order of the document. No name occurs twice.
    Map(Vec<(Name, Node)>),
}

impl Node {
    /// The member of this name, if this is a map that has it.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let NodeKind::Map(members) = &self.kind else { return None };
        members.iter().find(|(key, _)| key.text == name).map(|(_, value)| value)
    }

    /// What is at a path of names with dots between them.
    pub fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |node, name| node.get(name))
    }

    /// Whether this is a section that is switched off.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.get("enabled").is_some_and(|enabled| enabled.kind == NodeKind::Flag(false))
    }

    /// What it is, for error messages. Never the value itself.
    pub const fn found(&self) -> &'static str {
        match &self.kind {
            NodeKind::Null => "nothing",
            NodeKind::Flag(_) => "true or false",
            NodeKind::Integer(_) => "a whole number",
            NodeKind::Float(_) => "a number",
            NodeKind::Text(_) => "text",
            NodeKind::List(_) => "a list",
            NodeKind::Map(_) => "a map",
        }
    }

    /// The same as JSON, without the places.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Flag(flag) => Value::Bool(*flag),
            NodeKind::Integer(number) => Value::from(*number),
            NodeKind::Float(number) => Value::from(*number),
            NodeKind::Text(text) => Value::String(text.clone()),
            NodeKind::List(items) => items.iter().map(Self::to_value).collect(),
            NodeKind::Map(members) => {
                let members = members.iter();
                let pairs = members.map(|(name, value)| (name.text.clone(), value.to_value()));
                Value::Object(pairs.collect::<Map<String, Value>>())
            }
        }
    }
}
