//! The parser for untrusted JSON text: each member once, nesting and number of values bounded, errors
//! with a position.
//!
//! `serde_json` lets the last of two equal members win inside free-form JSON, so that two readers
//! can see two messages in one text. Nothing from outside is read in any other way than this one.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use memchr::memchr2;
use serde::de::{self, DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::canonical;

/// The deepest nesting that is read. Artifacts that carry such a value stay below
/// [`canonical::MAX_DEPTH`].
pub const MAX_DEPTH: usize = 96;

/// The most values and names of members that one text may have. A text of any length costs at most
/// [`tree_size`] of these: the densest, with two bytes for each, would cost a hundred times its
/// length.
pub const MAX_NODES: usize = 1 << 19;

/// What a value takes in a tree: its 72 bytes where maps keep the order of their members, which other
/// packages of the program ask for, and as much again that a growing array leaves unused.
const VALUE_SIZE: usize = 144;
/// What an array takes besides: the first time, it has room for four.
const ARRAY_SIZE: usize = 160;
/// What an object takes besides: in either kind of map, room for several members.
const OBJECT_SIZE: usize = 512;
/// What a member takes besides its value: its name, its hash, and room that is left unused.
const MEMBER_SIZE: usize = 112;

/// Objects with more members than this are checked for repetition through a hash set.
const LINEAR_MEMBERS: usize = 16;

/// The longest name that an error repeats.
const MAX_NAME: usize = 40;

/// The largest integer that every JSON reader keeps.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Why a text was refused. Values never appear in it, but for a number that [`canonicalize`]
/// refuses; names of members and variants do, shortened, and so do positions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrictError {
    /// Not JSON.
    #[error("not JSON: {message}")]
    Syntax {
        /// The parser's error, with its position.
        message: String,
    },
    /// One object names a member twice.
    #[error("expected each member once, found `{name}` twice (line {line}, column {column})")]
    DuplicateMember {
        /// The member.
        name: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// Nested deeper than [`MAX_DEPTH`].
    #[error(
        "expected at most {MAX_DEPTH} levels of nesting, found more (line {line}, column {column})"
    )]
    TooDeep {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// More values and names than [`MAX_NODES`].
    #[error(
        "expected at most {MAX_NODES} values and names of members, found more (line {line}, column \
         {column})"
    )]
    TooMany {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// JSON, but not of the shape that was asked for.
    #[error("{message}")]
    Shape {
        /// What was expected and what kind of thing came.
        message: String,
    },
    /// JSON with something that is not kept here: half of a surrogate pair, a number that is too large.
    #[error("expected {expected}")]
    Unkept {
        /// What would be accepted, and what came.
        expected: String,
    },
    /// A number that would not survive canonicalization as it was written.
    #[error("expected {expected}, found `{token}`")]
    Number {
        /// The number as written.
        token: String,
        /// What would be accepted.
        expected: &'static str,
    },
}

/// Reads a `T` from untrusted text.
///
/// # Errors
/// When the text is not JSON, repeats a member, nests too deep, has too many values or is not a `T`.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, StrictError> {
    check(text)?;
    reread(text)
}

/// Reads a `T` from a value that was read before.
///
/// # Errors
/// When the value is not a `T`.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, StrictError> {
    serde_json::from_value(value).map_err(|error| shape(&error))
}

/// Reads a `T` from a text that was checked before.
pub(crate) fn reread<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, StrictError> {
    serde_json::from_slice(text).map_err(|error| shape(&error))
}

/// Reads a `T` from untrusted text that must be a JSON object, as every artifact and message is.
///
/// Without this, `serde` would also take an array of a struct's members in order.
///
/// # Errors
/// As [`from_slice`], and when the text is not an object.
pub fn object_from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, StrictError> {
    checked_object(text)
}

/// As [`object_from_slice`], for a `T` that borrows from the text.
pub(crate) fn checked_object<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, StrictError> {
    check(text)?;
    let found = match text.trim_ascii_start().first() {
        Some(b'{') => return reread(text),
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        _ => "a single value",
    };
    Err(StrictError::Shape { message: format!("expected a JSON object, found {found}") })
}

/// Checks that a text is one JSON value without repeated members, excessive nesting or too many
/// values.
///
/// # Errors
/// When it is not.
pub fn check(text: &[u8]) -> Result<(), StrictError> {
    let (fault, nodes) = (Cell::new(None), Cell::new(0));
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let outcome = Walk { fault: &fault, nodes: &nodes, depth: 0 }
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    let Err(error) = outcome else { return Ok(()) };
    let (line, column) = (error.line(), error.column());
    Err(match fault.into_inner() {
        Some(Fault::Duplicate(name)) => {
            let name = name.chars().take(MAX_NAME).collect();
            StrictError::DuplicateMember { name, line, column }
        }
        Some(Fault::Depth) => StrictError::TooDeep { line, column },
        Some(Fault::Nodes) => StrictError::TooMany { line, column },
        None => refused(&error),
    })
}

/// What the parser says. Some of what it refuses is JSON all the same.
fn refused(error: &serde_json::Error) -> StrictError {
    let message = error.to_string();
    let (problem, place) = message.split_once(" at line ").unwrap_or((&message, ""));
    let expected = match problem {
        "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            "Unicode text, found half of a surrogate pair"
        }
        "number out of range" => "numbers that a double can hold, found a larger one",
        _ => return StrictError::Syntax { message },
    };
    StrictError::Unkept {
        expected: format!("{expected} (line {})", place.replace(" column", ", column")),
    }
}

/// Checks that no integer of a text that is known to be JSON loses digits when it is read: one of more
/// than 64 bits is read as a double.
///
/// # Errors
/// When one does.
pub fn check_integers(text: &[u8]) -> Result<(), StrictError> {
    let mut digits = 0_usize;
    // Hardly any text has so many in a row.
    let long = text.iter().any(|byte| {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        digits > 18
    });
    if !long || number_tokens(text).all(keeps_digits) {
        return Ok(());
    }
    let expected = "integers of at most 64 bits, found one of more digits than a double keeps";
    Err(StrictError::Unkept { expected: expected.to_owned() })
}

fn keeps_digits(token: &str) -> bool {
    if token.contains(['.', 'e', 'E'])
        || token.parse::<i64>().is_ok()
        || token.parse::<u64>().is_ok()
    {
        return true;
    }
    let mut buffer = ryu_js::Buffer::new();
    token
        .parse::<f64>()
        .is_ok_and(|value| significant_digits(token) == significant_digits(buffer.format(value)))
}

/// How many bytes of memory the tree of a text takes at most, when it is read into a [`Value`]. Told by
/// its marks alone, without reading it, so that a reader can wait for the room.
pub fn tree_size(text: &[u8]) -> usize {
    let (mut size, mut rest) = (VALUE_SIZE.saturating_add(text.len()), text);
    while let [byte, behind @ ..] = rest {
        rest = behind;
        size = size.saturating_add(match byte {
            b'"' => {
                rest = behind_string(behind);
                0
            }
            b',' => VALUE_SIZE,
            b'[' => ARRAY_SIZE + VALUE_SIZE,
            b'{' => OBJECT_SIZE + VALUE_SIZE,
            b':' => MEMBER_SIZE,
            _ => 0,
        });
    }
    size
}

/// What is behind the string that a text begins inside of.
fn behind_string(mut text: &[u8]) -> &[u8] {
    loop {
        let at = memchr2(b'"', b'\\', text).unwrap_or(text.len());
        match text.get(at..) {
            Some([b'"', behind @ ..]) => return behind,
            Some([_, _escaped, behind @ ..]) => text = behind,
            _ => return &[],
        }
    }
}

/// What kind of JSON a value is, for errors that do not repeat it.
pub const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Canonical form of a text that must already say exactly what its canonical form says: as
/// [`check`], and no number changes its value or precision.
///
/// # Errors
/// As [`check`], and for integers beyond 53 bits, fractions that are whole (`1.0`, `1e2`) and
/// fractions with more digits than a double keeps.
pub fn canonicalize(text: &[u8]) -> Result<Vec<u8>, StrictError> {
    let value: Value = from_slice(text)?;
    number_tokens(text).try_for_each(check_number)?;
    canonical::to_vec(&value).map_err(|error| StrictError::Shape { message: error.to_string() })
}

/// The number tokens of a text that is known to be JSON.
fn number_tokens(text: &[u8]) -> impl Iterator<Item = &str> {
    let mut in_string = false;
    let mut escaped = false;
    text.split(move |byte| {
        let quote = *byte == b'"' && !escaped;
        escaped = in_string && *byte == b'\\' && !escaped;
        in_string ^= quote;
        in_string || !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
    })
    .filter_map(|token| std::str::from_utf8(token).ok())
    // `true`, `false` and `null` leave behind an `e`.
    .filter(|token| token.bytes().any(|byte| byte.is_ascii_digit()))
}

fn check_number(token: &str) -> Result<(), StrictError> {
    let refuse = |expected| StrictError::Number { token: token.to_owned(), expected };
    if !token.contains(['.', 'e', 'E']) {
        let safe = token.trim_start_matches('-').parse().is_ok_and(|n: u64| n <= MAX_SAFE_INTEGER);
        // Readers take `-0` for a double, and write it without its sign.
        return if safe && token != "-0" {
            Ok(())
        } else {
            Err(refuse("an integer of at most 53 bits"))
        };
    }
    let value: f64 = token.parse().map_err(|_| refuse("a number"))?;
    if value.fract() == 0.0 {
        return Err(refuse("a whole number written without fraction or exponent"));
    }
    let mut buffer = ryu_js::Buffer::new();
    if significant_digits(token) == significant_digits(buffer.format(value)) {
        Ok(())
    } else {
        Err(refuse("a fraction with no more digits than a double keeps"))
    }
}

/// The digits of a number between its first and last that are not zero.
fn significant_digits(token: &str) -> String {
    let mantissa = token.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

/// A shape error without the values that `serde` would repeat.
pub(crate) fn shape(error: &serde_json::Error) -> StrictError {
    StrictError::Shape { message: without_values(&error.to_string()) }
}

/// Takes the value out of `invalid type: string "…", expected …`: values may be secrets.
fn without_values(message: &str) -> String {
    let Some((problem, rest)) = message.split_once(": ") else { return shorten_name(message) };
    let takes_value = matches!(problem, "invalid type" | "invalid value");
    let Some((found, expected)) = rest.rsplit_once(", expected ").filter(|_| takes_value) else {
        return shorten_name(message);
    };
    let kind = found.split(['"', '`']).next().unwrap_or_default().trim_end();
    match expected.rsplit_once(" at line ") {
        Some((expected, place)) => format!("expected {expected}, found {kind} at line {place}"),
        None => format!("expected {expected}, found {kind}"),
    }
}

/// Cuts the name in ``unknown field `…` `` and ``unknown variant `…` ``: the sender chose its length.
fn shorten_name(message: &str) -> String {
    let shown = |name: &str| name.chars().take(MAX_NAME).collect::<String>();
    match message.split_once('`').and_then(|(before, rest)| {
        let (name, after) = rest.split_once("`, ")?;
        before.starts_with("unknown ").then_some((before, name, after))
    }) {
        Some((before, name, after)) if name.chars().count() > MAX_NAME => {
            format!("{before}`{}…`, {after}", shown(name))
        }
        _ => message.to_owned(),
    }
}

/// What [`Walk`] found, for which `serde` has no error.
enum Fault {
    Duplicate(String),
    Depth,
    Nodes,
}

/// Walks through a value and stores nothing of it.
#[derive(Clone, Copy)]
struct Walk<'f> {
    fault: &'f Cell<Option<Fault>>,
    /// Values and names met so far.
    nodes: &'f Cell<usize>,
    depth: usize,
}

impl Walk<'_> {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            self.fault.set(Some(Fault::Depth));
            return Err(E::custom("nested too deep"));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    fn count<E: de::Error>(self) -> Result<(), E> {
        if self.nodes.get() == MAX_NODES {
            self.fault.set(Some(Fault::Nodes));
            return Err(E::custom("too many values"));
        }
        self.nodes.set(self.nodes.get() + 1);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

/// Implements the methods that visit a value without elements.
macro_rules! skip {
    ($($method:ident($($type:ty)?))*) => {$(
        fn $method<E>(self, $(_: $type)?) -> Result<(), E> {
            Ok(())
        }
    )*};
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    skip! {
        visit_bool(bool) visit_i64(i64) visit_u64(u64) visit_f64(f64) visit_str(&str) visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while array.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        let mut seen = Seen::default();
        while let Some(name) = object.next_key_seed(MemberName)? {
            self.count()?;
            if let Some(name) = seen.insert(name) {
                self.fault.set(Some(Fault::Duplicate(name.into_owned())));
                return Err(de::Error::custom("repeated member"));
            }
            object.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// The member names met so far in one object.
#[derive(Default)]
struct Seen<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Seen<'a> {
    /// Gives the name back when it was there before.
    fn insert(&mut self, name: Cow<'a, str>) -> Option<Cow<'a, str>> {
        if self.few.contains(&name) || self.many.contains(&name) {
            return Some(name);
        }
        if self.few.len() < LINEAR_MEMBERS {
            self.few.push(name);
        } else {
            self.many.insert(name);
        }
        None
    }
}

/// Reads a member name, borrowed where the text allows.
struct MemberName;

impl<'de> DeserializeSeed<'de> for MemberName {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for MemberName {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests;
