//! Errors of YAML syntax, in messages that name the remedy.

use std::sync::Arc;

use saphyr_parser::ScanError;

use crate::{Place, Problem};

/// For `*name`, which is mostly a glob that lacks its quotes.
pub(super) const ALIAS: &str = "a value that begins with `*` needs quotes, such as \"*.pem\" (YAML takes it for an alias, \
     which policies do not have)";
/// For `&name`.
pub(super) const ANCHOR: &str = "a value that begins with `&` needs quotes (YAML takes it for an anchor, which policies do not \
     have: write the value again where it is needed)";
/// For `!name`.
pub(super) const TAG: &str = "a value that begins with `!` needs quotes (YAML takes it for a tag, which policies do not have)";

/// Lists and maps in lists and maps without end.
pub(super) fn too_deep() -> String {
    format!("expected at most {} lists and maps in each other, found more", super::MAX_DEPTH)
}

/// Stops at brackets that lie absurdly deep before they are parsed, which takes a time that grows
/// with the square of their depth. Brackets in quotes and comments count too: with a bound that no
/// honest document comes near, that does not matter.
pub(super) fn check_nesting(text: &str, file: &Arc<str>) -> Result<(), Problem> {
    const MAX_OPEN: usize = 16 * super::MAX_DEPTH;
    let mut open = 0_usize;
    for (line, content) in text.lines().enumerate() {
        for (column, letter) in content.chars().enumerate() {
            match letter {
                '[' | '{' => open += 1,
                ']' | '}' => open = open.saturating_sub(1),
                _ => {}
            }
            if open > MAX_OPEN {
                let place = Place { file: Arc::clone(file), line: line + 1, column: column + 1 };
                return Err(Problem { place, message: too_deep() });
            }
        }
    }
    Ok(())
}

/// What the parser says, and what helps against it.
const WORDS: &[(&str, &str)] = &[
    ("unknown anchor", ALIAS),
    ("while scanning an anchor or alias", ALIAS),
    ("anchor", ANCHOR),
    ("tab", "a tab is used for indentation; use spaces"),
    (
        "unknown escape character",
        "in double quotes `\\` begins an escape; write `\\\\`, or use single quotes, in which `\\` is just a letter",
    ),
    (
        "hexadecimal number",
        "in double quotes `\\x`, `\\u` and `\\U` want 2, 4 and 8 hexadecimal digits; write `\\\\`, or use single quotes",
    ),
    ("Unicode character escape", "this escape stands for no character"),
    ("quoted scalar, found unexpected end of stream", "these quotes are not closed"),
    ("quoted scalar, found unexpected document indicator", "these quotes are not closed"),
    (
        "indentation in quoted scalar",
        "these quotes are not closed, or what is in them goes on without indentation",
    ),
    (
        "after double-quoted scalar",
        "nothing may follow the closing quotes; within single quotes a quote is written `''`, within double quotes `\\\"`",
    ),
    (
        "mapping values are not allowed",
        "a `: ` is not expected here; indent members of a map alike, and put text with `: ` in quotes",
    ),
    (
        "illegal placement of ':'",
        "a `:` is not expected here; is a bracket or a quote before it not closed?",
    ),
    ("mapping keys are not allowed", "a name is not expected here; check the indentation"),
    (
        "block sequence entries are not allowed",
        "a `- ` is not expected here; begin a list on a line of its own",
    ),
    ("start with '-'", "a value that begins with `-` needs quotes here"),
    ("'-' must be followed", "a value that begins with `-` needs quotes here"),
    ("':' must be followed", "expected a space after this `:`"),
    ("':' may not precede", "expected a space after this `:`"),
    (
        "comment intercepting",
        "a comment is not expected in the middle of a value; put the value in quotes",
    ),
    ("simple key expect", "expected a `:` after this name"),
    (
        "did not find expected '-' indicator",
        "expected a `- ` as before; indent items of a list alike",
    ),
    (
        "did not find expected key",
        "expected another member of the map, or the end of it; indent members alike, and write `name: value`",
    ),
    ("expected ',' or '}'", "expected `,` or `}` in the map that was begun with `{`"),
    ("expected ',' or ']'", "expected `,` or `]` in the list that was begun with `[`"),
    (
        "misplaced bracket",
        "this bracket closes nothing; remove it, or put text that begins with it in quotes",
    ),
    ("indentation in flow", "what is in brackets has to be indented more than the name before it"),
    (
        "indentation",
        "the indentation fits nothing above; indent alike what belongs together, with spaces",
    ),
    (
        "wrongly indented",
        "the indentation fits nothing above; indent alike what belongs together, with spaces",
    ),
    ("tag", TAG),
    ("directive", "a `%` at the beginning of a line is not expected here; put the value in quotes"),
    ("document start", "more text follows the end of the document; write one in each file"),
    ("document-start", "more text follows the end of the document; write one in each file"),
    ("content after document", "more text follows the end of the document; write one in each file"),
    ("unexpected character", "no value begins with this character; put the value in quotes"),
    ("unprintable", "this character cannot be printed; remove it"),
    ("block scalar", "after `|` or `>` the text begins on the next line, indented with spaces"),
    ("byte order mark", "a byte order mark may only be the first character of a file"),
    ("unexpected eof", "the document ends in the middle of a value"),
    ("unexpected end of plain scalar", "expected a value here, found none"),
    ("did not find expected node content", "expected a value here, found none"),
];

/// The parser's error as line, column and message.
pub(super) fn in_words(error: &ScanError, text: &str) -> (usize, usize, String) {
    let info = error.info();
    let (line, column) = (error.marker().line().max(1), error.marker().col() + 1);
    let words = WORDS.iter().find(|(part, _)| info.contains(part));
    let Some((part, words)) = words else {
        return (line, column, format!("this is not YAML: {info}"));
    };
    let (line, column) = match *part {
        // The parser has gone on to what follows.
        "simple key expect" if column == 1 => last_word(text, line).unwrap_or((line, column)),
        "tab" => (line, tab(text, line).unwrap_or(column)),
        _ => (line, column),
    };
    (line, column, (*words).to_owned())
}

/// Where the last line before this one that has anything begins.
fn last_word(text: &str, line: usize) -> Option<(usize, usize)> {
    let before = text.lines().take(line.saturating_sub(1)).enumerate();
    let (number, content) = before.filter(|(_, content)| !content.trim().is_empty()).last()?;
    let blank = content.chars().take_while(|c| c.is_whitespace()).count();
    Some((number + 1, blank + 1))
}

/// The column of the first tab in a line.
fn tab(text: &str, line: usize) -> Option<usize> {
    let content = text.lines().nth(line.saturating_sub(1))?;
    content.chars().position(|c| c == '\t').map(|column| column + 1)
}
