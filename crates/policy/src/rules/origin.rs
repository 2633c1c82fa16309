//! Where rules stand, and what is wrong with them in Cedar's own words on one line.

use cedar_policy::ffi::DetailedError;

use chio_yaml::{Place, Problems};

/// Text with rules.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// The text.
    pub text: &'a str,
    /// The location of its first character; every line of the text begins in the same column.
    pub start: Place,
    /// The file as the document names it; none where the rules are in the document itself.
    pub file: Option<&'a str>,
}

impl Source<'_> {
    /// The location of the character at a byte offset.
    pub(super) fn place(&self, offset: usize) -> Place {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let (lines, last) = before.rsplit_once('\n').unwrap_or(("", before));
        let line = if before.contains('\n') { lines.matches('\n').count() + 1 } else { 0 };
        Place {
            file: self.start.file.clone(),
            line: self.start.line + line,
            column: self.start.column + last.chars().count(),
        }
    }

    /// Notes what Cedar says.
    pub(super) fn say(&self, error: &DetailedError, problems: &Problems) {
        let at = error.source_locations.iter().map(|label| label.loc.start).min();
        problems.add(&self.place(at.unwrap_or(0)), in_words(error));
        for related in &error.related {
            self.say(related, problems);
        }
    }
}

/// What Cedar says that is clearer in other words.
const CLEARER: &[(&str, &str)] = &[
    ("policy is impossible", "this rule can never apply: what it says is false for every call"),
    (
        "unable to find an applicable action",
        "the head of this rule fits no call: principals are of type Agent, resources of type Tool, \
         and the one action is Action::\"call\"",
    ),
];

/// What Cedar says, on one line and without its own numbers of policies.
fn in_words(error: &DetailedError) -> String {
    let mut words = one_line(&error.message);
    let clearer = CLEARER.iter().find(|(theirs, _)| words.contains(theirs));
    if let Some((_, ours)) = clearer {
        words = (*ours).to_owned();
    }
    if let Some((_, rest)) =
        words.split_once("for policy `").and_then(|(_, it)| it.split_once("`, "))
    {
        words = rest.to_owned();
    }
    let label = error.source_locations.iter().find_map(|label| label.label.as_deref());
    for more in [label, error.help.as_deref()].into_iter().flatten() {
        words.push_str("; ");
        words.push_str(&one_line(more));
    }
    words
}

/// The words, without characters that turn a line around or are not seen at all.
fn one_line(text: &str) -> String {
    let is_odd = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let plain: String = text.chars().map(|c| if is_odd(c) { '?' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
