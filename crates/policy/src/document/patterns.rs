//! Regular expressions that documents write.

use chio_yaml::{Item, Key, Section};
use regex::{Error, Regex, RegexBuilder};

/// How long a pattern may be, in characters, as HushSpec has it.
const MAX_PATTERN: usize = 512;
/// How large a compiled pattern may be, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// A member that is a list of them.
pub(crate) const fn key(name: &'static str, default: &'static str, about: &'static str) -> Key {
    Key::new(name, "a list of regular expressions", default, about)
}

/// The list of a member. Empty when it is left out.
pub(crate) fn list(section: &Section<'_>, key: &str) -> Vec<Regex> {
    section.texts(key).into_iter().filter_map(|item| compiled(section, key, item)).collect()
}

/// The one of a member.
pub(crate) fn one(section: &Section<'_>, key: &str) -> Option<Regex> {
    compiled(section, key, section.text(key)?)
}

fn compiled(section: &Section<'_>, key: &str, item: Item<'_>) -> Option<Regex> {
    let length = item.text.chars().count();
    if length > MAX_PATTERN {
        let expected = format!("a pattern of at most {MAX_PATTERN} characters");
        let message = format_args!("expected {expected}, found {length}");
        return section.refuse(key, item.place, message);
    }
    let why = match RegexBuilder::new(item.text).size_limit(MAX_COMPILED).build() {
        Ok(regex) => return Some(regex),
        Err(Error::CompiledTooBig(limit)) => format!("it is larger than {limit} bytes compiled"),
        // The last line says why; those before repeat the pattern.
        Err(error) => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.trim().trim_start_matches("error: ").to_owned()
        }
    };
    section.refuse(key, item.place, format_args!("this pattern cannot be read: {why}"))
}
