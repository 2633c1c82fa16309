//! Text without invisible disguises: letters of other alphabets that look like
//! ours, and characters that have no width.

use crate::facts::fold::{has_no_width, latin};

/// Whether a character is not seen and changes nothing that is.
pub(crate) const fn is_invisible(c: char) -> bool {
    has_no_width(c) || c == '\u{ffa0}'
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
        'ε' => 'e',
        'σ' => 'o',
        'Ү' | 'Υ' => 'Y',
        'Ζ' => 'Z',
        c => return latin(c),
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
