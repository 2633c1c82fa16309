//! Names with `*` in them, as documents name tools and servers.

use std::cell::LazyCell;

use chio_kernel::GuardInput;
use chio_yaml::{Key, Section};
use serde_json::json;

use crate::example::ExampleCall;

/// One name, or many by `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamePattern {
    text: String,
    /// What stands between the stars; one piece when there is no star.
    pieces: Vec<String>,
    /// Whether it names the server, too.
    is_full: bool,
}

impl NamePattern {
    fn new(text: &str) -> Self {
        let pieces = text.split('*').map(str::to_owned).collect();
        Self { text: text.to_owned(), pieces, is_full: text.contains('/') }
    }

    fn matches(&self, name: &str) -> bool {
        let Some((first, rest)) = self.pieces.split_first() else { return false };
        let Some((last, middle)) = rest.split_last() else { return name == self.text };
        let Some(mut left) = name.strip_prefix(first.as_str()) else { return false };
        for piece in middle {
            match behind(left, piece) {
                Some(after) => left = after,
                None => return false,
            }
        }
        left.ends_with(last.as_str())
    }
}

/// What follows the first `piece` in a text. Names are short: a searcher such as
/// [`str::split_once`] makes for each search would cost more than the comparison.
fn behind<'a>(text: &'a str, piece: &str) -> Option<&'a str> {
    if piece.is_empty() {
        return Some(text);
    }
    let at = text.as_bytes().windows(piece.len()).position(|found| found == piece.as_bytes())?;
    text.get(at + piece.len()..)
}

/// Names of tools: `read_*`, or `files/read_*` for those of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolPatterns(Vec<NamePattern>);

impl ToolPatterns {
    /// A member of a section that is such a list.
    pub(crate) const fn key(name: &'static str, default: &'static str, about: &'static str) -> Key {
        Key::new(name, "a list of tool names, with `*`", default, about)
    }

    /// The list that a section has under this name.
    pub(crate) fn read(section: &Section<'_>, key: &str) -> Self {
        Self(section.texts(key).iter().map(|item| NamePattern::new(item.text)).collect())
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pattern that this tool is named by, if one is.
    pub(crate) fn find(&self, server_id: &str, tool_name: &str) -> Option<&str> {
        let full = LazyCell::new(|| format!("{server_id}/{tool_name}"));
        let names = |pattern: &&NamePattern| {
            // SECURITY: a tool cannot step into a server's name with a slash of its own.
            if pattern.is_full { pattern.matches(&full) } else { pattern.matches(tool_name) }
        };
        self.0.iter().find(names).map(|pattern| &*pattern.text)
    }

    /// Whether the called tool is named by one of the patterns, or there are none.
    pub(crate) fn covers(&self, input: &GuardInput<'_>) -> bool {
        self.is_empty() || self.find(input.server_id, input.tool_name).is_some()
    }

    /// A call that the first pattern matches; of the tool `otherwise` where there is no pattern.
    pub(crate) fn example_call(&self, otherwise: &str) -> ExampleCall {
        let name = self.0.first().map(|pattern| pattern.pieces.join("x"));
        let name = name.as_deref().unwrap_or(otherwise);
        let Some((server, tool)) = name.split_once('/') else {
            return ExampleCall::new(name, json!({}));
        };
        let call = ExampleCall::new(tool, json!({}));
        ExampleCall { server_id: server.to_owned(), ..call }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, matches) in [
            ("read", "read", true),
            ("read", "reads", false),
            ("read", "xread", false),
            ("*", "", true),
            ("*", "anything", true),
            ("read_*", "read_", true),
            ("read_*", "read_file", true),
            ("read_*", "xread_file", false),
            ("*_file", "read_file", true),
            ("*_file", "read_files", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("**", "x", true),
            ("*ä*", "xäx", true),
            ("*delete*", "undelete", true),
            ("*delete*", "delet", false),
        ] {
            assert_eq!(NamePattern::new(pattern).matches(name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_with_a_slash_is_about_one_server() {
        let patterns = ToolPatterns(vec![NamePattern::new("files/read_*")]);
        assert_eq!(patterns.find("files", "read_all"), Some("files/read_*"));
        assert_eq!(patterns.find("other", "read_all"), None);
        assert_eq!(patterns.find("other", "files/read_all"), None);
    }
}
