//! Patterns that are searched for in two steps: a quick look for all of them at once, and an exact
//! one for those that the quick look suspects.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

/// How large patterns may be, compiled, in bytes.
const MAX_SIZE: usize = 32 << 20;
/// A long counted repetition: each of its rounds is another copy of what it repeats.
const COUNTED: &str = r"\{(\d+),(?:[5-9]|\d{2,})\}";

/// One pattern.
#[derive(Debug)]
pub(crate) struct SearchPattern {
    text: String,
    /// Whether a document wrote it. In a pattern of ours braces always stand for repetition.
    is_written: bool,
    /// Ours are compiled when a text is first suspected: together they take 12 MB, and most are
    /// never needed.
    compiled: OnceLock<Option<Regex>>,
}

impl SearchPattern {
    /// One of ours.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_written: false, compiled: OnceLock::new() }
    }

    /// One that a document wrote.
    pub(crate) fn written(regex: Regex) -> Self {
        let text = regex.as_str().to_owned();
        Self { text, is_written: true, compiled: Some(regex).into() }
    }

    /// The exact form; none when it cannot be compiled, and then it counts as found.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        let build = || RegexBuilder::new(&self.text).size_limit(MAX_SIZE).build().ok();
        self.compiled.get_or_init(build).as_ref()
    }

    /// Whether a text has it.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex().is_none_or(|regex| regex.is_match(text))
    }

    /// The pattern as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Tells which patterns a text may have; a text that has one is never missed. Long repetitions have
/// no upper bound here, which makes the set small, and quick to run. `max_states` is how much memory
/// a search may take, in bytes.
///
/// # Errors
/// When the patterns are too large together.
pub(crate) fn quick_look<'a>(
    patterns: impl Iterator<Item = &'a SearchPattern>,
    max_states: usize,
) -> Result<RegexSet, regex::Error> {
    let counted = Regex::new(COUNTED)?;
    let wider = patterns.map(|pattern| match pattern.is_written {
        true => pattern.text.as_str().into(),
        false => counted.replace_all(&pattern.text, "{$1,}"),
    });
    RegexSetBuilder::new(wider).size_limit(MAX_SIZE).dfa_size_limit(max_states).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_look_takes_any_length_where_the_pattern_of_ours_has_a_bound() {
        let patterns = [
            SearchPattern::new("a{2,50}b"),
            SearchPattern::new("a{2,4}b"),
            SearchPattern::written(Regex::new("^[a{2,50}]$").unwrap()),
        ];
        let quick = quick_look(patterns.iter(), 1 << 20).unwrap();
        assert_eq!(quick.patterns(), ["a{2,}b", "a{2,4}b", "^[a{2,50}]$"]);
        let long = format!("{}b", "a".repeat(60));
        assert_eq!(quick.matches(&long).iter().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(patterns[0].regex().unwrap().find(&long).unwrap().len(), 51);
        assert!(SearchPattern::new("(").regex().is_none());
    }
}
