//! Text as a reader sees it: without what cannot be seen, and with one letter for letters that look
//! alike. Only for comparing: nothing is ever run or opened by its folded name.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// The text in which letters that look alike are one, and nothing is invisible.
pub(crate) fn folded(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|b| b.is_ascii() && (!b.is_ascii_control() || matches!(b, b'\t' | b'\n'))) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfkc().filter(|c| !is_invisible(*c)).map(lookalike).collect())
}

/// Characters that are not seen and change nothing that is: soft hyphens, joiners, fillers, marks of
/// direction, variation selectors, tags.
pub(crate) const fn has_no_width(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}')
}

/// The same, the rest of the tags' block, and control characters but tab and newline.
const fn is_invisible(c: char) -> bool {
    let control =
        matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}') && !matches!(c, '\t' | '\n');
    control || has_no_width(c) || matches!(c, '\u{e01f0}'..='\u{e0fff}')
}

/// The Latin letter that a letter of another alphabet looks like, in whatever typeface.
pub(crate) const fn latin(c: char) -> Option<char> {
    Some(match c {
        'а' | 'α' => 'a',
        'с' => 'c',
        'ԁ' => 'd',
        'е' => 'e',
        'һ' => 'h',
        'і' | 'ι' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ո' => 'n',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'ν' => 'v',
        'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'С' => 'C',
        'Е' | 'Ε' => 'E',
        'Н' | 'Η' => 'H',
        'І' | 'Ι' => 'I',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' => 'M',
        'Ν' => 'N',
        'О' | 'Ο' => 'O',
        'Р' | 'Ρ' => 'P',
        'Ѕ' => 'S',
        'Т' | 'Τ' => 'T',
        'Х' | 'Χ' => 'X',
        _ => return None,
    })
}

/// The ASCII character that a character looks like.
const fn lookalike(c: char) -> char {
    match c {
        '\u{2215}' | '\u{2044}' | '\u{29f8}' | '\u{2571}' | '\u{1735}' => '/',
        '\u{2216}' | '\u{29f9}' | '\u{29f5}' | '\u{2572}' => '\\',
        '\u{2028}' | '\u{2029}' => '\n',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2223}' | '\u{01c0}' => '|',
        '\u{2236}' | '\u{a789}' => ':',
        'ɑ' => 'a',
        'Ь' | 'ƅ' => 'b',
        'ϲ' => 'c',
        'ҽ' => 'e',
        'ı' => 'i',
        'ӏ' | 'ⅼ' => 'l',
        'м' => 'm',
        'п' => 'n',
        'օ' => 'o',
        'г' => 'r',
        'υ' | 'ս' => 'u',
        'ѵ' => 'v',
        other => match latin(other) {
            Some(letter) => letter,
            None => other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_look_alike_become_one_and_invisible_ones_go() {
        for (text, expected) in [
            ("plain text\n", "plain text\n"),
            ("ｅｔｃ／ｐａｓｓｗｄ", "etc/passwd"),
            ("\u{200b}.e\u{200d}nv\u{202e}", ".env"),
            ("/еtс/ѕhаdоw", "/etc/shadow"),
            ("a\u{2215}b\u{2044}c", "a/b/c"),
            ("r\u{8}m", "rm"),
        ] {
            assert_eq!(folded(text), expected);
        }
    }
}
