//! A section of a document, read strictly: what is not expected is a problem with its place.
//!
//! Every getter gives what is there, or nothing after it has noted what is wrong. A section that a
//! document does not have reads like an empty one.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use chio_core::duration::seconds;

use crate::key::Key;
use crate::node::{Node, NodeKind, Place};
use crate::problem::Problems;
use crate::words::{hint, not_one_of, shown};

/// Text and its place.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// The text.
    pub text: &'a str,
    /// Its location.
    pub place: &'a Place,
}

/// A map of a document that is being read.
#[derive(Debug, Clone)]
pub struct Section<'a> {
    node: &'a Node,
    path: String,
    problems: &'a Problems,
    keys: &'static [Key],
}

impl<'a> Section<'a> {
    /// Begins to read a map. Members that are none of `keys` are problems.
    pub fn new(
        node: &'a Node,
        path: impl Into<String>,
        keys: &'static [Key],
        problems: &'a Problems,
    ) -> Self {
        let section = Self { node, path: path.into(), problems, keys };
        section.check_names();
        section
    }

    /// Begins to read the top of a document, whose names were checked before.
    pub const fn top(node: &'a Node, keys: &'static [Key], problems: &'a Problems) -> Self {
        Self { node, path: String::new(), problems, keys }
    }

    fn check_names(&self) {
        let members = match &self.node.kind {
            NodeKind::Map(members) => members,
            // `forbidden_paths:` with nothing after it is all defaults.
            NodeKind::Null => return,
            _ => {
                return self.problem_at(&self.node.place, &no_map(self.node));
            }
        };
        let known: Vec<&str> = self.keys.iter().map(|key| key.name).collect();
        for (name, _) in members {
            if known.contains(&&*name.text) {
                continue;
            }
            let hint = hint(&name.text, &known);
            let text = shown(&name.text);
            self.problem_at(&name.place, &format!("there is no `{text}`{hint}"));
        }
    }

    fn shown_path(&self) -> String {
        if self.path.is_empty() { "the document".to_owned() } else { format!("`{}`", self.path) }
    }

    fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Notes that something is wrong with the value of a member, or with the section where it has
    /// no such member.
    pub fn problem(&self, key: &str, message: &str) {
        self.note(self.problems, key, message);
    }

    /// Notes that something is wrong at a place.
    pub fn problem_at(&self, place: &Place, message: &str) {
        self.note_at(self.problems, place, message);
    }

    /// Notes what is legal and may surprise about the value of a member.
    pub fn note(&self, notes: &Problems, key: &str, message: &str) {
        notes.add(self.place_of(key), format!("`{}`: {message}", self.full(key)));
    }

    /// The same about a place.
    pub fn note_at(&self, notes: &Problems, place: &Place, message: &str) {
        notes.add(place, format!("{}: {message}", self.shown_path()));
    }

    /// Everything that is wrong so far.
    pub const fn problems(&self) -> &'a Problems {
        self.problems
    }

    /// Where the section begins.
    pub const fn place(&self) -> &'a Place {
        &self.node.place
    }

    /// The value of a member; a member that is there without a value counts as left out.
    fn value(&self, key: &str) -> Option<&'a Node> {
        debug_assert!(self.keys.iter().any(|known| known.name == key), "undeclared key {key}");
        self.node.get(key).filter(|node| node.kind != NodeKind::Null)
    }

    /// Whether the document has this member.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Where the value of a member stands; the section where it is left out.
    pub fn place_of(&self, key: &str) -> &'a Place {
        self.node.get(key).map_or(&self.node.place, |node| &node.place)
    }

    fn wrong<T>(&self, key: &str, node: &Node, expected: &str) -> Option<T> {
        self.refuse(key, &node.place, format_args!("expected {expected}, found {}", node.found()))
    }

    /// Notes what is wrong with the value of a member at a place. There is no value then.
    pub fn refuse<T>(&self, key: &str, place: &Place, message: fmt::Arguments<'_>) -> Option<T> {
        self.problems.add(place, format!("`{}`: {message}", self.full(key)));
        None
    }

    /// Yes or no.
    #[must_use]
    pub fn flag(&self, key: &str, default: bool) -> bool {
        let Some(node) = self.value(key) else { return default };
        match &node.kind {
            NodeKind::Flag(flag) => *flag,
            NodeKind::Text(text) => {
                let way_out = match &*text.to_lowercase() {
                    "yes" | "on" | "y" | "true" => "; write `true`",
                    "no" | "off" | "n" | "false" => "; write `false`",
                    _ => "",
                };
                let message = format_args!("expected true or false, found text{way_out}");
                self.refuse(key, &node.place, message).unwrap_or(default)
            }
            _ => self.wrong(key, node, "true or false").unwrap_or(default),
        }
    }

    /// Nothing where the section is switched off.
    pub fn enabled(&self, default: bool) -> Option<()> {
        self.flag("enabled", default).then_some(())
    }

    /// A whole number within bounds.
    pub fn number(&self, key: &str, bounds: RangeInclusive<u64>) -> Option<u64> {
        let node = self.value(key)?;
        let expected = || format!("a whole number from {} to {}", bounds.start(), bounds.end());
        let number = match &node.kind {
            NodeKind::Integer(number) => *number,
            NodeKind::Text(text) if text.parse::<u64>().is_ok() => {
                let expected = format!("{}, found text; write it without quotes", expected());
                return self.refuse(key, &node.place, format_args!("expected {expected}"));
            }
            _ => return self.wrong(key, node, &expected()),
        };
        let found = u64::try_from(number).ok().filter(|number| bounds.contains(number));
        found.or_else(|| {
            let message = format_args!("expected {}, found {number}", expected());
            self.refuse(key, &node.place, message)
        })
    }

    /// A number within bounds.
    pub fn ratio(&self, key: &str, bounds: RangeInclusive<f64>) -> Option<f64> {
        let node = self.value(key)?;
        let expected = || format!("a number from {} to {}", bounds.start(), bounds.end());
        let number = match node.kind {
            #[expect(clippy::cast_precision_loss, reason = "bounds are small")]
            NodeKind::Integer(number) => number as f64,
            NodeKind::Float(number) => number,
            _ => return self.wrong(key, node, &expected()),
        };
        if bounds.contains(&number) {
            return Some(number);
        }
        self.refuse(key, &node.place, format_args!("expected {}, found {number}", expected()))
    }

    /// Notes that a member is missing, unless it is there and something else is wrong with it.
    pub fn required<T>(&self, key: &str, value: Option<T>, message: &str) -> Option<T> {
        if value.is_none() && !self.has(key) {
            self.problem(key, message);
        }
        value
    }

    /// The values that the words of a list stand for. Empty when it is left out.
    pub fn words<T: Copy>(&self, key: &str, known: &[(&str, T)]) -> Vec<T> {
        let value = |item: Item<'_>| {
            let found = known.iter().find(|(word, _)| *word == item.text);
            if found.is_none() {
                let names: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
                self.unknown_word(item, &names);
            }
            found.map(|(_, value)| *value)
        };
        self.texts(key).into_iter().filter_map(value).collect()
    }

    /// Text that is not blank.
    pub fn text(&self, key: &str) -> Option<Item<'a>> {
        let node = self.value(key)?;
        self.as_text(key, node, "text")
    }

    fn as_text(&self, key: &str, node: &'a Node, expected: &str) -> Option<Item<'a>> {
        match &node.kind {
            NodeKind::Text(text) if !text.trim().is_empty() => {
                Some(Item { text, place: &node.place })
            }
            NodeKind::Text(_) => {
                self.refuse(key, &node.place, format_args!("expected {expected}, found blank text"))
            }
            NodeKind::Null | NodeKind::List(_) | NodeKind::Map(_) => {
                self.wrong(key, node, expected)
            }
            // A bare word such as `true` or `8080` is text only in quotes.
            _ => self.wrong(key, node, &format!("{expected} (in quotes)")),
        }
    }

    /// One of these words.
    pub fn one_of<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let item = self.text(key)?;
        let found = words.iter().find(|(word, _)| *word == item.text);
        if found.is_none() {
            let expected = not_one_of(item.text, &names);
            return self.refuse(key, item.place, format_args!("{expected}"));
        }
        found.map(|(_, value)| *value)
    }

    /// Notes that a word of a list is none of those that are known.
    pub fn unknown_word(&self, word: Item<'_>, known: &[&str]) {
        self.problem_at(word.place, &not_one_of(word.text, known));
    }

    /// A list of texts. Empty when it is left out.
    pub fn texts(&self, key: &str) -> Vec<Item<'a>> {
        let Some(node) = self.value(key) else { return Vec::new() };
        let NodeKind::List(items) = &node.kind else {
            let found = node.found();
            let way_out = match node.kind {
                NodeKind::Text(_) => "; put it in `[ ]`",
                _ => ", each after `- `",
            };
            let message = format_args!("expected a list of texts, found {found}{way_out}");
            return self.refuse(key, &node.place, message).unwrap_or_default();
        };
        items.iter().filter_map(|item| self.as_text(key, item, "text")).collect()
    }

    /// How long: `30s`, `5m`, `2h`, `1d`, or a whole number of seconds.
    pub fn duration(&self, key: &str) -> Option<Duration> {
        let node = self.value(key)?;
        let seconds = match &node.kind {
            NodeKind::Integer(seconds) => u64::try_from(*seconds).ok(),
            NodeKind::Text(text) => {
                // Blanks may stand around the number, and a plus before it.
                let text = text.trim();
                let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let unit = text.strip_prefix(number).unwrap_or_default();
                let number = number.trim_end();
                seconds(&format!("{}{unit}", number.strip_prefix('+').unwrap_or(number)))
            }
            _ => None,
        };
        let duration = seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        duration.or_else(|| self.wrong(key, node, "a time such as `30s`, `5m`, `2h` or `1d`"))
    }

    /// A map below this one.
    pub fn section(&self, key: &str, keys: &'static [Key]) -> Option<Self> {
        let node = self.node.get(key)?;
        Some(Self::new(node, self.full(key), keys, self.problems))
    }

    /// A list of maps below this one.
    pub fn sections(&self, key: &str, keys: &'static [Key]) -> Vec<Self> {
        let Some(node) = self.value(key) else { return Vec::new() };
        let NodeKind::List(items) = &node.kind else {
            return self.wrong(key, node, "a list of maps, each after `- `").unwrap_or_default();
        };
        let path = |number: usize| format!("{}[{number}]", self.full(key));
        let items = items.iter().enumerate();
        items.map(|(number, node)| Self::new(node, path(number), keys, self.problems)).collect()
    }

    /// The raw value of a member.
    pub fn node(&self, key: &str) -> Option<&'a Node> {
        self.value(key)
    }
}

/// The message for a value that should be a map.
pub fn no_map(node: &Node) -> String {
    let way_out = match &node.kind {
        NodeKind::Text(text) if text.contains(':') => "; write a space after each `:`",
        NodeKind::List(_) => "; write its members as `name: value`, without `- `",
        _ => "",
    };
    format!("expected a map, found {}{way_out}", node.found())
}
