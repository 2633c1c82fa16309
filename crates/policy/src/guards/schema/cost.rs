//! How much it takes at most to hold a value against a schema, told before it is done: what
//! validates counts no steps and cannot be ended.
//!
//! The parts of a schema are nodes of a graph, with an edge to each part that is applied along with
//! them, or that they refer to. Where a reference may mean several parts, it counts for all.

use std::collections::HashMap;

use chio_kernel::{Spent, Work};
use regex::RegexBuilder;
use serde_json::{Map, Value};

use crate::facts::percent_decoded;

/// How many parts a schema may have.
const MAX_NODES: usize = 4096;
/// How often parts may apply or name others.
const MAX_EDGES: usize = 1 << 16;
/// How deep parts may be applied within each other: each is a call on the stack.
const MAX_DEPTH: usize = 256;
/// How often the alternatives of a pattern may be tried that only backtracking can decide.
pub(super) const MAX_BACKTRACKS: usize = 10_000;
/// How large a compiled pattern may be, in bytes.
pub(super) const MAX_PATTERN: usize = 1 << 20;

/// What a part is applied to, seen from the part that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reach {
    /// The same value.
    Here,
    /// The member of this name.
    Member(String),
    Members,
    /// The item at this place.
    Item(usize),
    Items,
    /// The names of the members.
    Names,
}

/// The keywords that apply one part, or each of a list or of a map.
const APPLICATORS: &[(&str, Reach)] = &[
    ("allOf", Reach::Here),
    ("anyOf", Reach::Here),
    ("oneOf", Reach::Here),
    ("not", Reach::Here),
    ("if", Reach::Here),
    ("then", Reach::Here),
    ("else", Reach::Here),
    ("additionalProperties", Reach::Members),
    ("unevaluatedProperties", Reach::Members),
    ("items", Reach::Items),
    ("prefixItems", Reach::Items),
    ("additionalItems", Reach::Items),
    ("unevaluatedItems", Reach::Items),
    ("contains", Reach::Items),
    ("propertyNames", Reach::Names),
];
/// The same for keywords that apply each part of a map.
const MAPS: &[(&str, Reach)] = &[
    ("properties", Reach::Members),
    ("patternProperties", Reach::Members),
    ("dependentSchemas", Reach::Here),
    ("dependencies", Reach::Here),
];
/// What the schemas of schemas take for each part of a value.
const OF_SCHEMAS: u64 = 256;
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that only say something to people, or hold parts for references.
const IDLE: [&str; 8] =
    ["title", "description", "$comment", "default", "examples", "$defs", "definitions", "$schema"];

/// A part of a schema.
#[derive(Debug, Default)]
struct Node {
    /// What its own keywords take, for any value.
    own: u64,
    /// What its patterns take for a text, and for the names of members.
    patterns: Vec<Pattern>,
    names: Vec<Pattern>,
    /// What it takes for each part of a value besides: it compares all items of a list, or applies
    /// a schema of schemas.
    deep: u64,
    /// It asks which members or items other parts have looked at: they are asked once more.
    unevaluated: bool,
    edges: Vec<(Reach, usize)>,
}

/// What a pattern takes.
#[derive(Debug, Clone, Copy)]
enum Pattern {
    /// A number of steps for each byte.
    Linear(u64),
    Backtracking,
}

impl Pattern {
    fn of(text: &str) -> Self {
        let fits = |bits: u32| RegexBuilder::new(text).size_limit(1 << bits).build();
        let too_big = |bits: u32| matches!(fits(bits), Err(regex::Error::CompiledTooBig(_)));
        // In the worst case each byte is held against each state.
        match fits(12) {
            Ok(_) => Self::Linear(8),
            Err(regex::Error::CompiledTooBig(_)) if !too_big(16) => Self::Linear(128),
            Err(regex::Error::CompiledTooBig(_)) => Self::Linear(2048),
            Err(_) => Self::Backtracking,
        }
    }

    const fn steps(self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        match self {
            Self::Linear(each) => bytes.saturating_mul(each),
            // Whatever is tried may look to the end of the text.
            Self::Backtracking => {
                (MAX_BACKTRACKS as u64).saturating_add(bytes).saturating_mul(bytes) / 16
            }
        }
    }
}

/// The parts of a schema and how they hang together.
#[derive(Debug)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    /// What all parts take for one value, when each is counted as often as it is reached; none
    /// where parts reach themselves, or a pattern takes more than in proportion.
    flat: Option<u64>,
}

impl Graph {
    /// The graph of a schema.
    pub(super) fn of(schema: &Value) -> Result<Self, &'static str> {
        let mut reader = Reader::new(schema);
        reader.node(schema, NO_TARGET);
        if reader.documents.len() + reader.anchors.len() > MAX_NODES {
            return Err("it has more names than can be looked at");
        }
        let (mut nodes, mut edges) = (Vec::<Node>::new(), 0);
        while let Some((part, target)) = reader.queue.get(nodes.len()).copied() {
            if nodes.len() >= MAX_NODES || edges > MAX_EDGES {
                return Err("it has more parts than can be looked at");
            }
            let node = reader.read(part, target)?;
            edges += node.edges.len();
            nodes.push(node);
        }
        let flat = flat(&nodes);
        Ok(Self { nodes, flat })
    }

    /// How many parts there are.
    pub(super) const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many steps it takes at most to hold this value against the schema. To find it out is
    /// charged.
    pub(super) fn steps(&self, value: &Value, bytes: usize, work: &Work) -> Result<u64, Unbounded> {
        // Nearly always this is little enough, and nothing has to be looked at.
        if let Some(steps) = self.flat.and_then(|flat| flat.checked_mul(bytes as u64 + 1))
            && steps <= FEW
        {
            return Ok(steps);
        }
        let mut walk = Walk { nodes: &self.nodes, work, known: HashMap::new(), deepest: 0 };
        let cost = walk.cost(0, Seen::Value(value), 0)?;
        // References look up what they are within.
        Ok(cost.valid.saturating_mul(1 + walk.deepest as u64 / 16))
    }
}

/// From how many steps on it is worth to find out how many they are really.
const FEW: u64 = 20_000;

/// Why it cannot be told how much it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unbounded {
    Spent,
    /// Parts are applied too deep within each other, or within themselves under `unevaluatedProperties`.
    TooDeep,
}

impl From<Spent> for Unbounded {
    fn from(_: Spent) -> Self {
        Self::Spent
    }
}

/// What all parts take together, from those without parts of their own up.
fn flat(nodes: &[Node]) -> Option<u64> {
    let mut waits: Vec<usize> = nodes.iter().map(|node| node.edges.len()).collect();
    let mut totals: Vec<u64> = nodes.iter().map(Node::flat).collect::<Option<_>>()?;
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        node.edges
            .iter()
            .filter_map(|(_, to)| above.get_mut(*to).map(|list| list.push(place)))
            .count();
    }
    let mut ready: Vec<usize> =
        (0..nodes.len()).filter(|place| waits.get(*place) == Some(&0)).collect();
    let mut done = 0;
    while let Some(place) = ready.pop() {
        done += 1;
        let total = totals.get(place).copied()?;
        for over in above.get(place)? {
            *totals.get_mut(*over)? = totals.get(*over)?.saturating_add(total);
            let left = waits.get_mut(*over)?;
            *left -= 1;
            if *left == 0 {
                ready.push(*over);
            }
        }
    }
    (done == nodes.len()).then(|| totals.first().copied()).flatten()
}

impl Node {
    /// What it takes for each byte of a value; none where that does not grow with it.
    fn flat(&self) -> Option<u64> {
        if self.unevaluated || self.deep > 0 {
            return None;
        }
        let mut steps = 4 + self.own;
        for pattern in self.patterns.iter().chain(&self.names) {
            let Pattern::Linear(each) = pattern else { return None };
            steps = steps.saturating_add(*each);
        }
        Some(steps)
    }
}

/// The address of the part whose parts these are, which a reference led to. What validates makes
/// them anew for it, and only there sees that it has come back to them.
type Target = usize;
/// No reference led there.
const NO_TARGET: Target = 0;

/// Reads a schema into nodes.
struct Reader<'s> {
    /// Parts that have an identifier, and so are documents of their own.
    documents: Vec<(&'s str, &'s Value)>,
    anchors: Vec<(&'s str, &'s Value)>,
    known: HashMap<(*const Value, Target), usize>,
    queue: Vec<(&'s Value, Target)>,
}

impl<'s> Reader<'s> {
    fn new(document: &'s Value) -> Self {
        let (known, queue) = (HashMap::new(), Vec::new());
        let documents = vec![("", document)];
        let mut reader = Self { documents, anchors: Vec::new(), known, queue };
        reader.name(document);
        reader
    }

    /// Collects the parts that references may name.
    fn name(&mut self, value: &'s Value) {
        match value {
            Value::Object(members) => {
                let text = |name: &str| members.get(name)?.as_str();
                let of_anchor = members.contains_key("$recursiveAnchor").then_some("");
                let documents = [text("$id"), text("id"), of_anchor].into_iter().flatten();
                self.documents.extend(documents.map(|name| (name, value)));
                let of_id = text("$id").and_then(|id| id.strip_prefix('#'));
                let anchors = [text("$anchor"), text("$dynamicAnchor"), of_id];
                self.anchors.extend(anchors.into_iter().flatten().map(|name| (name, value)));
                members.values().for_each(|member| self.name(member));
            }
            Value::Array(items) => items.iter().for_each(|item| self.name(item)),
            _ => {}
        }
    }

    /// The place of a part's node.
    fn node(&mut self, part: &'s Value, target: Target) -> usize {
        let next = self.queue.len();
        let place = *self.known.entry((std::ptr::from_ref(part), target)).or_insert(next);
        if place == next {
            self.queue.push((part, target));
        }
        place
    }

    fn read(&mut self, part: &'s Value, target: Target) -> Result<Node, &'static str> {
        let mut node = Node::default();
        let Value::Object(members) = part else { return Ok(node) };
        for (keyword, value) in members {
            let keyword = keyword.as_str();
            if let Some((_, reach)) = APPLICATORS.iter().find(|(name, _)| *name == keyword) {
                self.apply((reach, target), value, &mut node);
                node.unevaluated |= keyword.starts_with("unevaluated");
            } else if let Some((_, reach)) = MAPS.iter().find(|(name, _)| *name == keyword) {
                self.apply_each(keyword, (reach, target), value, &mut node);
            } else if REFERENCES.contains(&keyword) {
                self.refer(value.as_str().unwrap_or_default(), &mut node)?;
            } else if keyword == "pattern" {
                node.patterns.extend(value.as_str().map(Pattern::of));
            } else if !IDLE.contains(&keyword) {
                node.deep += if keyword == "uniqueItems" { 16 } else { 0 };
                node.own += 1 + weight(value);
            }
        }
        Ok(node)
    }

    fn apply(&mut self, (reach, target): (&Reach, Target), value: &'s Value, node: &mut Node) {
        match value {
            Value::Array(parts) => {
                for (place, part) in parts.iter().enumerate() {
                    let reach =
                        if *reach == Reach::Items { Reach::Item(place) } else { reach.clone() };
                    node.edges.push((reach, self.node(part, target)));
                }
            }
            part => node.edges.push((reach.clone(), self.node(part, target))),
        }
    }

    fn apply_each(
        &mut self,
        keyword: &str,
        (reach, target): (&Reach, Target),
        value: &'s Value,
        node: &mut Node,
    ) {
        let members: Option<&'s Map<String, Value>> = value.as_object();
        for (name, part) in members.into_iter().flatten() {
            if keyword == "patternProperties" {
                node.names.push(Pattern::of(name));
            }
            // `dependencies` may also be lists of names.
            if part.is_object() || part.is_boolean() {
                let is_member = keyword == "properties";
                let reach = if is_member { Reach::Member(name.clone()) } else { reach.clone() };
                node.edges.push((reach, self.node(part, target)));
            } else {
                node.own += 1 + weight(part);
            }
        }
    }

    /// Every part that a reference may mean.
    fn refer(&mut self, reference: &str, node: &mut Node) -> Result<(), &'static str> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if uri.contains("json-schema.org/") {
            node.deep += OF_SCHEMAS;
            return Ok(());
        }
        let fragment = percent_decoded(fragment);
        let is_anchor = !fragment.is_empty() && !fragment.starts_with('/');
        let named = if is_anchor { &self.anchors } else { &self.documents };
        let last = |uri: &str| uri.trim_end_matches('#').rsplit('/').next() == uri_end(reference);
        let is_meant = |name: &str| match is_anchor {
            true => name == fragment,
            false => uri.is_empty() || last(name),
        };
        let meant = named.iter().filter(|(name, _)| is_meant(name)).map(|(_, part)| *part);
        let parts: Vec<&'s Value> = match is_anchor {
            true => meant.collect(),
            false => meant.filter_map(|part| part.pointer(&fragment)).collect(),
        };
        if parts.is_empty() {
            return Err("it refers to what is not within it");
        }
        for part in parts {
            let target = std::ptr::from_ref(part).addr();
            let edge = (Reach::Here, self.node(part, target));
            if !node.edges.contains(&edge) {
                node.edges.push(edge);
            }
        }
        Ok(())
    }
}

/// The last name of a reference's document.
fn uri_end(reference: &str) -> Option<&str> {
    reference.split('#').next()?.rsplit('/').next()
}

/// How much there is of a value: its parts, and the length of its texts.
fn weight(value: &Value) -> u64 {
    1 + match value {
        Value::String(text) => text.len() as u64 / 16,
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| 1 + name.len() as u64 / 16 + weight(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// What a part is held against.
#[derive(Debug, Clone, Copy)]
enum Seen<'v> {
    Value(&'v Value),
    /// The name of a member.
    Name(&'v str),
}

impl Seen<'_> {
    /// The same for the same value, as long as it is borrowed.
    fn identity(self) -> (usize, usize) {
        match self {
            Self::Value(value) => (std::ptr::from_ref(value).addr(), 0),
            Self::Name(name) => (name.as_ptr().addr(), name.len() + 1),
        }
    }
}

/// What a part takes at most.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// To be held against a value.
    valid: u64,
    /// To tell once more which members or items it has looked at.
    mark: u64,
    /// How deep the pair lies that it came back to, where it came back to one above it.
    back_to: usize,
    /// A part that is applied to the same value applies itself.
    circular: bool,
}

/// What is known of a pair.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// It is being looked at, so deep. What validates does not look at such a pair once more.
    Open(usize),
    Done(Cost),
}

/// A walk over parts and the values that they are held against. Each pair is looked at once; one
/// that comes back to a pair above it, as often as what validates would.
struct Walk<'g, 'w> {
    nodes: &'g [Node],
    work: &'w Work,
    known: HashMap<(usize, (usize, usize)), Known>,
    deepest: usize,
}

impl Walk<'_, '_> {
    fn cost(&mut self, place: usize, seen: Seen<'_>, depth: usize) -> Result<Cost, Unbounded> {
        let key = (place, seen.identity());
        match self.known.get(&key) {
            Some(Known::Done(cost)) => return Ok(*cost),
            Some(Known::Open(depth)) => {
                return Ok(Cost { valid: 1, mark: 1, back_to: *depth, circular: true });
            }
            None => {}
        }
        self.deepest = self.deepest.max(depth);
        let node = self.nodes.get(place).filter(|_| depth < MAX_DEPTH).ok_or(Unbounded::TooDeep)?;
        self.work.charge_each(node.edges.len() + 1, 4)?;
        self.known.insert(key, Known::Open(depth));
        let mut cost =
            Cost { valid: own(node, seen), mark: 1, back_to: usize::MAX, circular: false };
        for (reach, to) in &node.edges {
            self.add(reach, *to, seen, depth + 1, &mut cost)?;
        }
        if node.unevaluated {
            // What asks which members were looked at does not notice that it comes back.
            if cost.circular {
                return Err(Unbounded::TooDeep);
            }
            cost.valid = cost.valid.saturating_add(cost.mark);
        }
        if cost.back_to >= depth {
            cost.back_to = usize::MAX;
            self.known.insert(key, Known::Done(cost));
        } else {
            self.known.remove(&key);
        }
        Ok(cost)
    }

    /// Adds what a part takes that is applied along with another.
    fn add(
        &mut self,
        reach: &Reach,
        to: usize,
        seen: Seen<'_>,
        depth: usize,
        cost: &mut Cost,
    ) -> Result<(), Unbounded> {
        let mut one = |walk: &mut Self, seen: Seen<'_>| {
            let part = walk.cost(to, seen, depth)?;
            cost.back_to = cost.back_to.min(part.back_to);
            cost.valid = cost.valid.saturating_add(part.valid);
            // It is asked once more, and then for what it has looked at.
            cost.mark = cost.mark.saturating_add(part.valid);
            if *reach == Reach::Here {
                cost.mark = cost.mark.saturating_add(part.mark);
                cost.circular |= part.circular;
            }
            Ok(())
        };
        match (reach, seen) {
            (Reach::Here, seen) => one(self, seen),
            (Reach::Member(name), Seen::Value(Value::Object(members))) => match members.get(name) {
                Some(value) => one(self, Seen::Value(value)),
                None => Ok(()),
            },
            (Reach::Members, Seen::Value(Value::Object(members))) => {
                members.values().try_for_each(|value| one(self, Seen::Value(value)))
            }
            (Reach::Names, Seen::Value(Value::Object(members))) => {
                members.keys().try_for_each(|name| one(self, Seen::Name(name)))
            }
            (Reach::Item(place), Seen::Value(Value::Array(items))) => match items.get(*place) {
                Some(value) => one(self, Seen::Value(value)),
                None => Ok(()),
            },
            (Reach::Items, Seen::Value(Value::Array(items))) => {
                items.iter().try_for_each(|value| one(self, Seen::Value(value)))
            }
            _ => Ok(()),
        }
    }
}

/// What the keywords of a part take for a value, without those that apply other parts.
fn own(node: &Node, seen: Seen<'_>) -> u64 {
    let texts = |patterns: &[Pattern], bytes: usize| {
        let steps = patterns.iter().map(|pattern| pattern.steps(bytes));
        steps.fold(bytes as u64 / 16, u64::saturating_add)
    };
    let of_value = match seen {
        Seen::Name(name) => texts(&node.patterns, name.len()),
        Seen::Value(Value::String(text)) => texts(&node.patterns, text.len()),
        Seen::Value(Value::Object(members)) => {
            let names = members.keys().map(|name| texts(&node.names, name.len()));
            // They are asked again for what is left over.
            names.fold(members.len() as u64, u64::saturating_add).saturating_mul(2)
        }
        Seen::Value(Value::Array(items)) => items.len() as u64,
        Seen::Value(_) => 1,
    };
    let deep = match seen {
        Seen::Value(value) if node.deep > 0 => weight(value).saturating_mul(node.deep),
        _ => 0,
    };
    of_value.saturating_add(deep).saturating_add(4 + node.own)
}

#[cfg(test)]
mod tests;
