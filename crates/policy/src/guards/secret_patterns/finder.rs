//! Finds secrets in text: one quick look for all kinds at once, and a careful one where it matters.

use std::ops::Range;

use regex::{Regex, RegexSet};

use crate::search_pattern::{SearchPattern, quick_look};

/// How much memory a quick look may take, in bytes.
const MAX_STATES: usize = 8 << 20;

/// How bad it is that a secret is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// It is noted, and kept out of receipts.
    Warn,
    /// The call is denied.
    Error,
    /// The call is denied.
    Critical,
}

/// Whether a text that has the form of a secret is one, by the text and the character after it.
pub(super) type Check = fn(&str, Option<char>) -> bool;

/// A kind of secret.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) severity: Severity,
    pattern: SearchPattern,
    /// For text that has lost its spaces and quotes.
    loose: Option<SearchPattern>,
    check: Option<Check>,
}

impl Kind {
    pub(super) fn new(
        name: &str,
        severity: Severity,
        pattern: &str,
        loose: Option<&str>,
        check: Check,
    ) -> Self {
        let (pattern, loose) = (SearchPattern::new(pattern), loose.map(SearchPattern::new));
        Self { name: name.to_owned(), severity, pattern, loose, check: Some(check) }
    }

    /// As a document has it: whatever it matches counts.
    pub(super) fn written(name: String, severity: Severity, regex: Regex) -> Self {
        let pattern = SearchPattern::written(regex);
        Self { name, severity, pattern, loose: None, check: None }
    }

    fn find(&self, pattern: &SearchPattern, text: &str, found: &mut impl FnMut(Range<usize>)) {
        let Some(regex) = pattern.regex() else { return found(0..text.len()) };
        for captures in regex.captures_iter(text) {
            let Some(secret) = captures.name("secret").or_else(|| captures.get(0)) else {
                continue;
            };
            let after = text.get(secret.end()..).and_then(|rest| rest.chars().next());
            if !secret.is_empty() && self.check.is_none_or(|check| check(secret.as_str(), after)) {
                found(secret.range());
            }
        }
    }
}

/// All kinds of secrets that a guard looks for.
#[derive(Debug)]
pub(super) struct Finder {
    kinds: Vec<Kind>,
    /// All patterns at once.
    quick: RegexSet,
    /// The patterns for text without spaces at once, and whose they are.
    quick_loose: RegexSet,
    loose: Vec<usize>,
    /// Whether some kind is from a document; those are searched for in joined texts, too.
    pub(super) has_written: bool,
}

impl Finder {
    /// These kinds.
    pub(super) fn new(kinds: Vec<Kind>) -> Result<Self, regex::Error> {
        let quick = quick_look(kinds.iter().map(|kind| &kind.pattern), MAX_STATES)?;
        let loose = kinds.iter().enumerate().filter(|(_, kind)| kind.loose.is_some());
        let loose: Vec<usize> = loose.map(|(place, _)| place).collect();
        let patterns = kinds.iter().filter_map(|kind| kind.loose.as_ref());
        let quick_loose = quick_look(patterns, MAX_STATES)?;
        let has_written = kinds.iter().any(|kind| kind.check.is_none());
        Ok(Self { kinds, quick, quick_loose, loose, has_written })
    }

    pub(super) fn kind(&self, place: usize) -> Option<&Kind> {
        self.kinds.get(place)
    }

    /// Whether a text may have a secret in it.
    pub(super) fn suspects(&self, text: &str) -> bool {
        self.quick.is_match(text)
    }

    /// Every pattern, in both forms.
    #[cfg(test)]
    pub(super) fn patterns(&self) -> impl Iterator<Item = &SearchPattern> {
        self.kinds.iter().flat_map(|kind| [Some(&kind.pattern), kind.loose.as_ref()]).flatten()
    }

    /// The same for text that has lost its spaces and quotes.
    pub(super) fn suspects_loose(&self, text: &str) -> bool {
        self.quick_loose.is_match(text)
    }

    /// Every secret of a text: the place of its kind, and where it stands.
    pub(super) fn find(&self, text: &str, mut found: impl FnMut(usize, Range<usize>)) {
        for place in &self.quick.matches(text) {
            let Some(kind) = self.kinds.get(place) else { continue };
            kind.find(&kind.pattern, text, &mut |range| found(place, range));
        }
    }

    /// The same for text that has lost its spaces and quotes.
    pub(super) fn find_loose(&self, text: &str, mut found: impl FnMut(usize, Range<usize>)) {
        for matched in &self.quick_loose.matches(text) {
            let Some(place) = self.loose.get(matched) else { continue };
            let Some(kind) = self.kinds.get(*place) else { continue };
            if let Some(pattern) = &kind.loose {
                kind.find(pattern, text, &mut |range| found(*place, range));
            }
        }
    }
}
