//! Text for people: nothing in it steers a terminal, no matter who wrote it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

/// The text with everything invisible written out. Tokens and receipts come from strangers.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_invisible(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// A JSON document over several lines, with a newline at its end.
pub(crate) fn json<T: Serialize>(document: &T) -> Result<String> {
    let mut shown = visible_json(&serde_json::to_string_pretty(document)?);
    shown.push('\n');
    Ok(shown)
}

/// JSON in which each character of a string is seen or escaped.
pub(crate) fn visible_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        // Newlines are between the members; those inside strings are escaped already.
        if is_invisible(character) && character != '\n' {
            // Writing to a text does not fail.
            let _ = write!(shown, "\\u{:04x}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Control characters, and those that change direction or take no room.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}' | '\u{feff}'
        )
}

/// The wire name of a unit variant, as `read_result`.
pub(crate) fn name<T: Serialize>(variant: &T) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(name)) => name,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// The wire name of a unit variant in words, as `read result`.
pub(crate) fn words<T: Serialize>(variant: &T) -> String {
    name(variant).replace('_', " ")
}

/// `1 call`, `2 calls`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The beginning of a text that may be longer than this many characters.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A text that is cut, and says so, where it has more than this many characters.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    shortened(text, width.saturating_sub(1))
}

/// Digits of an id that tell things apart for people.
const ID_DIGITS: usize = 12;
/// The form of a UUID: how many digits stand between its dashes.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// The beginning of an id by which people and commands know it: its first digits, after the word that
/// says what it is. A name that an operator chose is shown as it is.
pub(crate) fn short_id(id: &str) -> String {
    let id = id.strip_prefix("child-rcpt-").unwrap_or(id);
    let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (name, last) = id.rsplit_once('-').map_or(("", id), |(name, last)| (name, last));
    if last.len() >= 4 * ID_DIGITS && is_hex(last) {
        let dash = if name.is_empty() { "" } else { "-" };
        return format!("{name}{dash}{}", last.chars().take(ID_DIGITS).collect::<String>());
    }
    let parts: Vec<&str> = id.split('-').collect();
    let Some(before) = parts.len().checked_sub(UUID.len()) else { return id.to_owned() };
    let mut digits = parts.iter().skip(before).zip(UUID);
    if !digits.all(|(part, length)| part.len() == length && is_hex(part)) {
        return id.to_owned();
    }
    parts.get(..before + 2).unwrap_or_default().join("-")
}

/// The short forms of ids, and those that have the same short form in full.
pub(crate) fn short_ids<'a>(ids: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut seen = HashMap::new();
    for id in ids.clone() {
        *seen.entry(short_id(id)).or_insert(0_usize) += 1;
    }
    let alone = |short: &String| seen.get(short) == Some(&1);
    ids.map(|id| Some(short_id(id)).filter(alone).unwrap_or_else(|| id.to_owned())).collect()
}

/// Running text in lines of at most this many characters, where its words allow it.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// As [`wrapped`], with longer words cut into pieces.
pub(crate) fn filled(text: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    for line in wrapped(text, width) {
        let letters: Vec<char> = line.chars().collect();
        pieces.extend(letters.chunks(width.max(1)).map(|piece| piece.iter().collect::<String>()));
    }
    pieces
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{count, filled, fitted, json, name, plain, short_id, short_ids, words};

    #[test]
    fn what_steers_a_terminal_is_shown_instead() {
        assert_eq!(plain("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(plain("a\u{202e}b\u{9b}c\u{2067}"), "a\\u{202e}b\\u{9b}c\\u{2067}");
        assert_eq!(plain("ordinary: äöü 中 😀"), "ordinary: äöü 中 😀");
    }

    #[test]
    fn an_id_is_known_by_its_first_digits() {
        let hash = "109bfb253f65d6aa1c843c3904f03cf423382305be3d917adae3db6e4833c83a";
        for (id, expected) in [
            (hash, "109bfb253f65"),
            ("appr-019ace00-7d1c-7b2e-9f0a-3b1f6f3a2c11", "appr-019ace00-7d1c"),
            ("child-rcpt-019ace00-7d1c-7b2e-9f0a-3b1f6f3a2c11", "019ace00-7d1c"),
            (&format!("local-log-{hash}"), "local-log-109bfb253f65"),
            ("cap-notes", "cap-notes"),
            ("my-own-name-of-five-parts", "my-own-name-of-five-parts"),
            ("", ""),
        ] {
            assert_eq!(short_id(id), expected);
        }
        let twins =
            ["a-019ace00-7d1c-7b2e-9f0a-3b1f6f3a2c11", "a-019ace00-7d1c-7b2e-9f0a-000000000000"];
        assert_eq!(
            short_ids(twins.into_iter().chain([hash])),
            [twins[0], twins[1], "109bfb253f65"]
        );
    }

    #[test]
    fn long_text_is_cut_or_wrapped_to_its_columns() {
        assert_eq!((&*fitted("abcd", 4), &*fitted("abcde", 4)), ("abcd", "abc…"));
        assert_eq!(filled("a bb cccccc", 4), ["a bb", "cccc", "cc"]);
    }

    #[test]
    fn json_says_the_same_with_escapes() {
        let document = json!({"a": "\u{9b}\u{202e}\n", "b": ["ä"]});
        let text = json(&document).unwrap();
        assert_eq!(text, "{\n  \"a\": \"\\u009b\\u202e\\n\",\n  \"b\": [\n    \"ä\"\n  ]\n}\n");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), document);
    }

    #[test]
    fn variants_have_their_wire_name() {
        use chio_core::capability::Operation;
        assert_eq!(name(&Operation::ReadResult), "read_result");
        assert_eq!(words(&Operation::ReadResult), "read result");
    }

    #[test]
    fn nouns_agree_with_numbers() {
        assert_eq!(
            [count(0, "hop"), count(1, "hop"), count(2, "hop")],
            ["0 hops", "1 hop", "2 hops"]
        );
    }
}
