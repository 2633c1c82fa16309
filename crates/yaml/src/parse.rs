//! YAML to a tree, strictly and within bounds.
//!
//! What is read is YAML 1.2 with its core schema, so `yes` and `on` are text. Left out on purpose,
//! since a document has to mean what it looks like: anchors, aliases and merge keys, tags, names that
//! are no text, names that occur twice, and more than one document in a file.

mod scalar;
mod syntax;

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

use crate::node::{Name, Node, NodeKind, Place};
use crate::problem::Problem;
use crate::words::shown;

/// How long a document may be, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// How deep lists and maps may lie in each other.
pub const MAX_DEPTH: usize = 64;
/// How many values and names a document may have.
pub const MAX_NODES: usize = 100_000;
/// How many problems are reported at once.
const MAX_PROBLEMS: usize = 50;

/// Reads a document. Nothing at all reads as [`NodeKind::Null`].
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(text: &str, file: &str) -> Result<Node, Vec<Problem>> {
    let file: Arc<str> = Arc::from(file);
    let start = Place { file: Arc::clone(&file), line: 1, column: 1 };
    if text.len() > MAX_BYTES {
        let message =
            format!("expected a document of at most {MAX_BYTES} bytes, found {}", text.len());
        return Err(vec![Problem { place: start, message }]);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Err(problem) = syntax::check_nesting(text, &file) {
        return Err(vec![problem]);
    }
    let mut tree = Tree { file, ..Tree::default() };
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => tree.take(event, span),
            Err(error) => {
                let (line, column, message) = syntax::in_words(&error, text);
                let place = Place { file: Arc::clone(&tree.file), line, column };
                tree.stop(place, message);
            }
        }
        if tree.stopped {
            break;
        }
    }
    if tree.problems.is_empty() {
        return Ok(tree.root.unwrap_or(Node { place: start, kind: NodeKind::Null }));
    }
    Err(tree.problems)
}

/// A list or a map that is not closed yet.
struct Open {
    place: Place,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Node>),
    Map { members: Vec<(Name, Node)>, lines: HashMap<String, usize>, next: Option<Name> },
}

/// The tree as far as it is read.
#[derive(Default)]
struct Tree {
    file: Arc<str>,
    open: Vec<Open>,
    root: Option<Node>,
    nodes: usize,
    documents: usize,
    problems: Vec<Problem>,
    /// What follows cannot be parsed sensibly.
    stopped: bool,
}

impl Tree {
    fn place(&self, marker: Marker) -> Place {
        let (line, column) = (marker.line().max(1), marker.col() + 1);
        Place { file: Arc::clone(&self.file), line, column }
    }

    fn say(&mut self, place: Place, message: impl Into<String>) {
        self.problems.push(Problem { place, message: message.into() });
        self.stopped |= self.problems.len() >= MAX_PROBLEMS;
    }

    fn stop(&mut self, place: Place, message: impl Into<String>) {
        self.say(place, message);
        self.stopped = true;
    }

    fn take(&mut self, event: Event<'_>, span: Span) {
        let place = self.place(span.start);
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.stop(place, "a second document begins here; write one in each file");
                }
            }
            Event::Alias(_) => self.stop(place, syntax::ALIAS),
            Event::Scalar(text, style, anchor, tag) => {
                self.check_extras(&place, anchor, tag.is_some());
                self.scalar(place, &text, style);
            }
            Event::SequenceStart(anchor, tag) => {
                self.check_extras(&place, anchor, tag.is_some());
                self.begin(place, OpenKind::List(Vec::new()));
            }
            Event::MappingStart(anchor, tag) => {
                self.check_extras(&place, anchor, tag.is_some());
                let (members, lines) = (Vec::new(), HashMap::new());
                self.begin(place, OpenKind::Map { members, lines, next: None });
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
    }

    fn check_extras(&mut self, place: &Place, anchor: usize, tag: bool) {
        if anchor != 0 {
            self.say(place.clone(), syntax::ANCHOR);
        }
        if tag {
            self.say(place.clone(), syntax::TAG);
        }
    }

    /// Whether the next value stands where a map has the name of a member.
    fn expects_name(&self) -> bool {
        let top = self.open.last().map(|open| &open.kind);
        matches!(top, Some(OpenKind::Map { next: None, .. }))
    }

    fn count(&mut self, place: &Place) {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let message = format!("expected at most {MAX_NODES} values in a document, found more");
            self.stop(place.clone(), message);
        }
    }

    fn scalar(&mut self, place: Place, text: &str, style: ScalarStyle) {
        self.count(&place);
        let kind = if style == ScalarStyle::Plain {
            scalar::kind_of(text)
        } else {
            Ok(NodeKind::Text(text.to_owned()))
        };
        if self.expects_name() {
            return self.name(place, text, kind.ok());
        }
        match kind {
            Ok(kind) => self.value(Node { place, kind }),
            Err(message) => {
                self.say(place.clone(), message);
                self.value(Node { place, kind: NodeKind::Null });
            }
        }
    }

    fn name(&mut self, place: Place, text: &str, kind: Option<NodeKind>) {
        match kind {
            Some(NodeKind::Text(_)) => {}
            Some(NodeKind::Null) if text.is_empty() => {
                self.say(place.clone(), "expected a name before the `:`, found nothing");
            }
            Some(kind) => {
                let found = Node { place: place.clone(), kind }.found();
                let message = format!("expected a name, found {found}; put it in quotes");
                self.say(place.clone(), message);
            }
            None => self.say(place.clone(), "expected a name, found a number; put it in quotes"),
        }
        if text == "<<" {
            self.say(place.clone(), "merge keys (`<<`) are not read here; write the members out");
        }
        let mut first = None;
        if let Some(Open { kind: OpenKind::Map { lines, next, .. }, .. }) = self.open.last_mut() {
            first = lines.get(text).copied();
            lines.entry(text.to_owned()).or_insert(place.line);
            *next = Some(Name { text: text.to_owned(), place: place.clone() });
        }
        if let Some(first) = first {
            let text = shown(text);
            let message = format!("`{text}` is here a second time; the first is on line {first}");
            self.say(place, message);
        }
    }

    fn begin(&mut self, place: Place, kind: OpenKind) {
        self.count(&place);
        if self.expects_name() {
            let (found, mark) = match kind {
                OpenKind::List(_) => ("a list", '['),
                OpenKind::Map { .. } => ("a map", '{'),
            };
            let message = format!(
                "expected a name, found {found}; put text that begins with `{mark}` in quotes"
            );
            return self.stop(place, message);
        }
        if self.open.len() >= MAX_DEPTH {
            return self.stop(place, syntax::too_deep());
        }
        self.open.push(Open { place, kind });
    }

    fn end(&mut self) {
        let Some(Open { place, kind }) = self.open.pop() else { return };
        let kind = match kind {
            OpenKind::List(items) => NodeKind::List(items),
            OpenKind::Map { members, .. } => NodeKind::Map(members),
        };
        self.value(Node { place, kind });
    }

    fn value(&mut self, node: Node) {
        match self.open.last_mut().map(|open| &mut open.kind) {
            Some(OpenKind::List(items)) => items.push(node),
            Some(OpenKind::Map { members, next, .. }) => {
                if let Some(name) = next.take() {
                    members.push((name, node));
                }
            }
            None => self.root = Some(node),
        }
    }
}
