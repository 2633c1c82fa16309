//! Words of a command line, with what is known of each of their characters.

use std::borrow::Cow;

use chio_kernel::Work;

use super::Unreadable;

/// How many words a brace may stand for.
const MAX_BRACES: usize = 256;

/// A character of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) c: char,
    /// It stands for itself: it neither splits nor matches nor expands.
    pub(super) quoted: bool,
    /// It belongs to something that is only known when it runs.
    pub(super) unknown: bool,
}

/// A word that is being read.
#[derive(Debug, Clone, Default)]
pub(super) struct Field {
    pub(super) marks: Vec<Mark>,
    /// Quotes make an empty word a word.
    pub(super) quoted: bool,
}

impl Field {
    pub(super) fn push(&mut self, c: char, quoted: bool) {
        self.marks.push(Mark { c, quoted, unknown: false });
    }

    pub(super) fn push_unknown(&mut self, text: &str) {
        self.marks.extend(text.chars().map(|c| Mark { c, quoted: true, unknown: true }));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.marks.is_empty() && !self.quoted
    }

    /// The text, where it is all plain letters.
    pub(super) fn text(&self) -> String {
        self.marks.iter().map(|mark| mark.c).collect()
    }

    /// The words that it stands for, with its braces expanded.
    pub(super) fn words(&self, work: &Work) -> Result<Vec<Word>, Unreadable> {
        let mut out = Vec::new();
        braces(&without_ranges(&self.marks), &mut out, 0, work)?;
        Ok(out.into_iter().map(|marks| Word::of(&marks)).collect())
    }
}

/// A word as a command gets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// The text. What is only known when it runs stands as it was written.
    pub(crate) text: String,
    /// The text without that, where there is such.
    pub(crate) bare: Option<String>,
    /// It has `*`, `?` or `[` that a shell would match with files.
    pub(crate) globs: bool,
}

impl Word {
    /// A word of plain text.
    pub(super) fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), bare: None, globs: false }
    }

    fn of(marks: &[Mark]) -> Self {
        let unknown = marks.iter().any(|mark| mark.unknown);
        let known = || marks.iter().filter(|mark| !mark.unknown).map(|mark| mark.c).collect();
        Self {
            text: marks.iter().map(|mark| mark.c).collect(),
            bare: unknown.then(known),
            globs: marks.iter().any(|mark| !mark.quoted && matches!(mark.c, '*' | '?' | '[')),
        }
    }

    /// The word with `**` for what is only known when it runs, where a name stands behind that.
    pub(crate) fn widened(&self) -> Option<String> {
        // What the home folder or the working folder is, is known well enough.
        let known = ["$HOME", "${HOME", "$PWD", "${PWD"];
        let bare = self.bare.as_deref()?;
        if known.iter().any(|start| self.text.starts_with(start)) {
            return None;
        }
        let start = common(self.text.chars(), bare.chars());
        let end = common(self.text.chars().rev(), bare.chars().rev());
        let behind = self.text.get(self.text.len().checked_sub(end)?..)?;
        let behind =
            behind.get(behind.find('/')?..).filter(|it| !it.trim_matches('/').is_empty())?;
        let before = self.text.get(..start).filter(|before| !before.is_empty()).unwrap_or("/");
        Some(format!("{before}**{behind}"))
    }

    /// The word with `*` for what is only known when it runs, where its last name has other letters
    /// as well.
    pub(crate) fn as_pattern(&self) -> Option<String> {
        let bare = self.bare.as_deref()?;
        let start = common(self.text.chars(), bare.chars());
        let end = common(self.text.chars().rev(), bare.chars().rev()).min(bare.len() - start);
        let before = self.text.get(..start)?;
        let behind = self.text.get(self.text.len().checked_sub(end)?..)?;
        let name = before.rsplit('/').next().unwrap_or(before);
        let has_letters = [name, behind].iter().any(|it| it.contains(char::is_alphanumeric));
        (has_letters && !behind.contains('/')).then(|| format!("{before}*{behind}"))
    }

    /// The word as a folder; any, where it is only known when it runs.
    pub(crate) fn as_folder(&self) -> String {
        let Some(bare) = self.bare.as_deref() else { return self.text.clone() };
        if self.text.starts_with("$HOME") || self.text.starts_with("$PWD") {
            return self.text.clone();
        }
        let start = common(self.text.chars(), bare.chars());
        let before = self.text.get(..start).filter(|before| !before.is_empty()).unwrap_or("/");
        format!("{before}**")
    }

    /// The name of the command that this word runs: without its folder, in lower case.
    pub(crate) fn command_name(&self) -> String {
        let known = self.bare.as_deref().filter(|bare| bare.contains(|c: char| c.is_alphabetic()));
        let text = known.unwrap_or(&self.text);
        let name = text.rsplit(['/', '\\']).next().unwrap_or(text).to_lowercase();
        name.strip_suffix(".exe").map_or(name.clone(), str::to_owned)
    }
}

/// How many bytes of two texts are the same, from where they begin.
fn common(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).map(|(c, _)| c.len_utf8()).sum()
}

/// A word where `{a..z}` is `*`, and `{a..a}` is `a`.
fn without_ranges(marks: &[Mark]) -> Cow<'_, [Mark]> {
    let plain = |mark: &Mark, c: char| mark.c == c && !mark.quoted;
    let (mut out, mut rest) = (Vec::new(), marks);
    while let Some(start) = rest.iter().position(|mark| plain(mark, '{')) {
        let (before, from) = rest.split_at(start);
        let inner = from.get(1..).unwrap_or_default();
        let end = inner.iter().position(|mark| ['{', '}', ','].iter().any(|c| plain(mark, *c)));
        let range: String =
            inner.get(..end.unwrap_or(0)).unwrap_or_default().iter().map(|mark| mark.c).collect();
        let ends = range.split_once("..").filter(|(from, to)| !from.is_empty() && !to.is_empty());
        let closes = end.and_then(|end| inner.get(end)).is_some_and(|mark| plain(mark, '}'));
        out.extend(before);
        match (ends.filter(|_| closes), end) {
            (Some((from, to)), Some(end)) => {
                let one = if from == to { from } else { "*" };
                out.extend(one.chars().map(|c| Mark { c, quoted: false, unknown: false }));
                rest = inner.get(end + 1..).unwrap_or_default();
            }
            _ => {
                out.extend(from.first());
                rest = inner;
            }
        }
    }
    if out.is_empty() {
        return Cow::Borrowed(marks);
    }
    out.extend(rest);
    Cow::Owned(out)
}

/// Every word that braces stand for: `{a,b}c` is `ac` and `bc`.
fn braces(
    marks: &[Mark],
    out: &mut Vec<Vec<Mark>>,
    depth: usize,
    work: &Work,
) -> Result<(), Unreadable> {
    let Some((start, end, commas)) = first_brace(marks, work)? else {
        // The first is the text that was read; the others take memory of their own.
        work.charge_each(marks.len(), if out.is_empty() { 1 } else { 8 })?;
        out.push(marks.to_vec());
        return Ok(());
    };
    if depth > 8 || commas.len() + out.len() > MAX_BRACES {
        return Err(Unreadable::TooMuch);
    }
    let mut from = start + 1;
    for to in commas.into_iter().chain([end]) {
        let mut one: Vec<Mark> = marks.get(..start).unwrap_or_default().to_vec();
        one.extend(marks.get(from..to).unwrap_or_default());
        one.extend(marks.get(end + 1..).unwrap_or_default());
        braces(&one, out, depth + 1, work)?;
        from = to + 1;
    }
    Ok(())
}

/// Braces with a comma between them: where they begin and end, and where the commas are.
type Brace = (usize, usize, Vec<usize>);

/// The first braces with a comma between them.
fn first_brace(marks: &[Mark], work: &Work) -> Result<Option<Brace>, Unreadable> {
    let opens = marks.iter().enumerate().filter(|(_, mark)| mark.c == '{' && !mark.quoted);
    for (start, _) in opens.take(MAX_BRACES) {
        work.charge_each(marks.len() - start, 1)?;
        let mut depth = 0_usize;
        let mut commas = Vec::new();
        for (place, mark) in marks.iter().enumerate().skip(start).filter(|(_, mark)| !mark.quoted) {
            match mark.c {
                '{' => depth += 1,
                '}' if depth == 1 => {
                    if commas.is_empty() {
                        break;
                    }
                    return Ok(Some((start, place, commas)));
                }
                '}' => depth -= 1,
                ',' if depth == 1 => commas.push(place),
                _ => {}
            }
        }
    }
    Ok(None)
}
