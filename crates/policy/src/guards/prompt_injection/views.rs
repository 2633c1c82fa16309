//! Forms of a text: as it is displayed, as letters alone, and what is hidden
//! in invisible characters.

use crate::guards::secret_patterns::fold::{is_invisible, lookalike, plain};

/// The text as it is displayed: no invisible characters, one typeface, one alphabet in each word.
pub(super) fn seen(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut seen = String::with_capacity(text.len());
    let mut word: Vec<char> = Vec::new();
    for c in text.chars().filter(|c| !is_invisible(*c)).map(plain).chain(['\n']) {
        if c.is_alphanumeric() {
            word.push(c);
            continue;
        }
        let has_latin = word.iter().any(char::is_ascii_alphabetic);
        // A word in another alphabet is a word of another language.
        let one = |c: &char| if has_latin { lookalike(*c).unwrap_or(*c) } else { *c };
        seen.extend(word.iter().map(one));
        word.clear();
        seen.push(c);
    }
    seen.pop();
    seen
}

/// The letters alone, with digits and signs read as the letters that they stand for.
pub(super) fn letters(seen: &str) -> String {
    let letter = |c: char| match c {
        '0' => Some('o'),
        '1' | '!' | '|' => Some('i'),
        '3' | '€' => Some('e'),
        '4' | '@' => Some('a'),
        '5' | '$' => Some('s'),
        '7' => Some('t'),
        c if c.is_ascii_alphabetic() => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    seen.chars().filter_map(letter).collect()
}

/// What is written in tag characters, which are invisible. The flags of countries do not count.
pub(super) fn tags(text: &str) -> String {
    let mut found = String::new();
    let mut in_flag = false;
    for c in text.chars() {
        match c {
            '\u{1f3f4}' => in_flag = true,
            '\u{e007f}' => in_flag = false,
            '\u{e0020}'..='\u{e007e}' if !in_flag => {
                found.extend(char::from_u32(u32::from(c) - 0xe0000));
            }
            '\u{e0020}'..='\u{e007e}' => {}
            _ => in_flag = false,
        }
    }
    found
}

/// How much in a text is not seen.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unseen {
    /// Characters of no width between Latin letters.
    pub(super) inside_words: usize,
    /// Characters that turn the direction of writing around.
    pub(super) turns: usize,
    /// The longest run of variation selectors.
    pub(super) selectors: usize,
}

impl Unseen {
    pub(super) fn of(text: &str) -> Self {
        let mut unseen = Self::default();
        let (mut before, mut run) = (' ', 0);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            run = if matches!(c, '\u{e0100}'..='\u{e01ef}' | '\u{fe00}'..='\u{fe0f}') {
                run + 1
            } else {
                0
            };
            unseen.selectors = unseen.selectors.max(run);
            if matches!(c, '\u{202d}' | '\u{202e}') {
                unseen.turns += 1;
            }
            let is_thin = matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}' | '\u{180e}');
            let next_is_latin = chars.peek().is_some_and(char::is_ascii_alphabetic);
            if is_thin && before.is_ascii_alphabetic() && next_is_latin {
                unseen.inside_words += 1;
            }
            if !is_thin {
                before = c;
            }
        }
        unseen
    }
}

#[cfg(test)]
mod tests {
    use super::{Unseen, letters, seen, tags};

    #[test]
    fn a_text_is_read_as_people_see_it() {
        for (text, expected) in [
            ("plain", "plain"),
            ("ig\u{200b}no\u{ad}re", "ignore"),
            ("іgnоre", "ignore"),
            ("ｉｇｎｏｒｅ 𝐚𝐥𝐥", "ignore all"),
            ("игнорируй это", "игнорируй это"),
            ("naïve café", "naïve café"),
        ] {
            assert_eq!(seen(text), expected, "{text}");
        }
        assert_eq!(letters("1gn0r3 - a.l.l!"), "ignorealli");
    }

    #[test]
    fn what_nobody_sees_is_found() {
        let hidden: String =
            "hi".chars().filter_map(|c| char::from_u32(u32::from(c) + 0xe0000)).collect();
        assert_eq!(tags(&format!("a{hidden}b")), "hi");
        assert_eq!(
            tags("\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}"),
            "",
            "England's flag"
        );
        assert_eq!(Unseen::of("a\u{200b}b\u{202e}c").inside_words, 1);
        assert_eq!(Unseen::of("\u{1f468}\u{200d}\u{1f469} می\u{200c}خواهم").inside_words, 0);
        assert_eq!(Unseen::of("a\u{e0100}\u{e0101}\u{e0102}").selectors, 3);
    }
}
