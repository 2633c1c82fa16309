//! Text without the disguises that people do not see: letters of other alphabets that look like
//! ours, and characters that have no width.

/// Whether a character is not seen and changes nothing that is: zero width, joiners, soft hyphens,
/// directions, tags, variation selectors.
pub(crate) const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}')
}

/// The ASCII character that a character stands for in another width or typeface.
pub(crate) fn plain(c: char) -> char {
    let code = u32::from(c);
    let ascii = match code {
        // Full width.
        0xff01..=0xff5e => code - 0xff01 + 0x21,
        // Mathematical letters: thirteen typefaces of 52 letters, then five of ten digits.
        0x1d400..=0x1d6a3 => letter((code - 0x1d400) % 52),
        0x1d7ce..=0x1d7ff => u32::from(b'0') + (code - 0x1d7ce) % 10,
        // In circles.
        0x24b6..=0x24cf => code - 0x24b6 + u32::from(b'A'),
        0x24d0..=0x24e9 => code - 0x24d0 + u32::from(b'a'),
        0x1f130..=0x1f149 => code - 0x1f130 + u32::from(b'A'),
        _ => return c,
    };
    char::from_u32(ascii).unwrap_or(c)
}

fn letter(place: u32) -> u32 {
    if place < 26 { u32::from(b'A') + place } else { u32::from(b'a') + place - 26 }
}

/// The Latin letter that a Cyrillic or Greek one looks like.
pub(crate) const fn lookalike(c: char) -> Option<char> {
    Some(match c {
        'а' | 'α' => 'a',
        'е' | 'ε' => 'e',
        'о' | 'ο' | 'σ' => 'o',
        'р' | 'ρ' => 'p',
        'с' => 'c',
        'у' | 'γ' => 'y',
        'х' | 'χ' => 'x',
        'і' | 'ι' => 'i',
        'ѕ' => 's',
        'ј' => 'j',
        'ԁ' => 'd',
        'һ' => 'h',
        'ԛ' => 'q',
        'ԝ' => 'w',
        'ո' => 'n',
        'ν' => 'v',
        'κ' | 'к' => 'k',
        'τ' | 'т' => 't',
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'Е' | 'Ε' => 'E',
        'Н' | 'Η' => 'H',
        'І' | 'Ι' => 'I',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' => 'M',
        'Ν' => 'N',
        'О' | 'Ο' => 'O',
        'Р' | 'Ρ' => 'P',
        'С' => 'C',
        'Ѕ' => 'S',
        'Т' | 'Τ' => 'T',
        'Х' | 'Χ' => 'X',
        'Ү' | 'Υ' => 'Y',
        'Ζ' => 'Z',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{is_invisible, lookalike, plain};

    #[test]
    fn other_typefaces_are_read_as_the_letters_that_they_show() {
        for (c, expected) in [
            ('Ａ', 'A'),
            ('ｚ', 'z'),
            ('＿', '_'),
            ('𝐀', 'A'),
            ('𝘻', 'z'),
            ('𝟘', '0'),
            ('ⓐ', 'a'),
            ('é', 'é'),
        ] {
            assert_eq!(plain(c), expected, "{c}");
        }
        assert_eq!((lookalike('А'), lookalike('я')), (Some('A'), None));
        assert!(is_invisible('\u{200b}') && is_invisible('\u{e0041}') && !is_invisible(' '));
    }
}
