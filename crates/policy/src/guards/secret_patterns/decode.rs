//! What stands behind one level of an encoding: base64, hex, percent signs, escapes of JSON and
//! of programming languages.

use std::ops::Range;

/// The shortest run of letters and digits that is decoded.
const MIN_RUN: usize = 24;
/// How much of one text is decoded; what is behind it stays as it is.
const MAX_DECODED: usize = 256 * 1024;

/// A text behind an encoding, and where its encoded form stands.
pub(crate) struct Decoded {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

/// Whether decoding could find anything: cheap, for texts that are as they seem.
pub(crate) fn may_be_encoded(text: &str) -> bool {
    let (mut run, mut kinds) = (0_usize, 0_u8);
    for byte in text.bytes() {
        match class(byte) {
            0 => {
                if matches!(byte, b'%' | b'\\' | b'&') {
                    return true;
                }
                (run, kinds) = (0, 0);
            }
            kind => {
                run += 1;
                kinds |= kind;
                // Letters of both cases with digits, or hex.
                if run >= MIN_RUN && (kinds & 7 == 7 || kinds & 8 == 0) {
                    return true;
                }
            }
        }
    }
    false
}

/// Bits for upper case, lower case and digits, and one for what is no hex digit; 0 for what no
/// encoding has.
const fn class(byte: u8) -> u8 {
    match byte {
        b'A'..=b'F' => 1,
        b'a'..=b'f' => 2,
        b'0'..=b'9' => 4,
        b'G'..=b'Z' => 1 | 8,
        b'g'..=b'z' => 2 | 8,
        b'+' | b'/' | b'_' | b'-' | b'=' => 8,
        _ => 0,
    }
}

/// Everything readable that stands encoded in a text.
pub(crate) fn decoded(text: &str) -> Vec<Decoded> {
    let mut found = Vec::new();
    let mut begin = 0;
    let bytes = text.as_bytes();
    for (place, byte) in bytes.iter().enumerate().chain([(bytes.len(), &b' ')]) {
        if class(*byte) != 0 {
            continue;
        }
        if place - begin >= MIN_RUN
            && let Some(run) = bytes.get(begin..place)
        {
            let texts = [hex(run), base64(run)];
            let texts = texts.into_iter().flatten().filter_map(readable);
            found.extend(texts.map(|text| Decoded { range: begin..place, text }));
        }
        begin = place + 1;
    }
    if text.contains('\n') {
        found.extend(wrapped(text));
    }
    if text.len() <= MAX_DECODED {
        let whole = 0..text.len();
        let others = [percent(text), escapes(text), entities(text)].into_iter().flatten();
        found.extend(others.map(|text| Decoded { range: whole.clone(), text }));
    }
    found
}

/// Lines of at least this many characters are taken for one text that was broken.
const MIN_LINE: usize = 60;

/// Everything readable that stands in base64 over several lines, as `base64` and mail write it.
fn wrapped(text: &str) -> Vec<Decoded> {
    let mut found = Vec::new();
    let (mut begin, mut end, mut run) = (0, 0, Vec::new());
    let mut at = 0;
    // The empty line at the end closes a run that reaches the end.
    for line in text.split_inclusive('\n').chain([""]) {
        let plain = line.trim();
        let is_coded = !plain.is_empty() && plain.bytes().all(|byte| class(byte) != 0);
        let start = at;
        at += line.len();
        if is_coded && (run.is_empty() || plain.len() <= 1024) {
            if run.is_empty() {
                begin = start;
            }
            run.extend_from_slice(plain.as_bytes());
            end = start + line.trim_end().len();
            if plain.len() >= MIN_LINE {
                continue;
            }
        }
        if run.len() > MIN_LINE
            && let Some(text) = base64(&run).and_then(readable)
        {
            found.push(Decoded { range: begin..end, text });
        }
        run.clear();
    }
    found
}

/// As text, where it is some: random bytes are none.
fn readable(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let odd = text.chars().filter(|c| c.is_control() && !c.is_whitespace()).count();
    (odd == 0 && text.len() >= 8).then_some(text)
}

fn hex(run: &[u8]) -> Option<Vec<u8>> {
    if !run.len().is_multiple_of(2) || run.len() > MAX_DECODED {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, _) = run.as_chunks::<2>();
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Both alphabets, with or without padding, also where the last bits are not zero.
fn base64(run: &[u8]) -> Option<Vec<u8>> {
    if run.len() > MAX_DECODED {
        return None;
    }
    let mut bytes = Vec::with_capacity(run.len() / 4 * 3 + 3);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for byte in run.iter().take_while(|byte| **byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).unwrap_or_default());
        }
    }
    Some(bytes)
}

fn percent(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    let mut found = false;
    while let Some((first, after)) = rest.split_first() {
        let pair = match after {
            [high, low, ..] if *first == b'%' => hex(&[*high, *low]),
            _ => None,
        };
        found |= pair.is_some();
        rest = if pair.is_some() { after.get(2..).unwrap_or_default() } else { after };
        bytes.extend(pair.unwrap_or_else(|| vec![*first]));
    }
    found.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// `\u0041`, `\u{41}`, `\x41` and `\n` as what they mean.
fn escapes(text: &str) -> Option<String> {
    if !text.contains('\\') {
        return None;
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let (c, left) = escaped(after);
        plain.extend(c);
        rest = left;
    }
    plain.push_str(rest);
    Some(plain)
}

/// The character that an escape means, and what comes after it. An escape that is none loses its
/// backslash alone.
fn escaped(after: &str) -> (Option<char>, &str) {
    let mut chars = after.chars();
    let digits = match chars.next() {
        Some('n' | 'r') => return (Some('\n'), chars.as_str()),
        Some('t') => return (Some('\t'), chars.as_str()),
        Some('x') => 2,
        Some('u') => 4,
        _ => return (None, after),
    };
    let rest = chars.as_str();
    // The end of a code is near, or it is none.
    let braced =
        rest.strip_prefix('{').filter(|rest| rest.bytes().take(9).any(|byte| byte == b'}'));
    let (code, left) = match braced.and_then(|rest| rest.split_once('}')) {
        Some(found) => found,
        None => rest.split_at_checked(digits).unwrap_or(("", rest)),
    };
    match u32::from_str_radix(code, 16).ok().and_then(char::from_u32) {
        Some(c) => (Some(c), left),
        None => (None, after),
    }
}

/// `&#65;` and `&#x41;` as what they mean.
fn entities(text: &str) -> Option<String> {
    if !text.contains("&#") {
        return None;
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("&#") {
        plain.push_str(before);
        let (c, left) = entity(after).unwrap_or(('#', after));
        plain.push(c);
        rest = left;
    }
    plain.push_str(rest);
    Some(plain)
}

fn entity(after: &str) -> Option<(char, &str)> {
    let (digits, radix) = match after.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (after, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, left) = digits.split_at_checked(end)?;
    let c = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32)?;
    Some((c, left.strip_prefix(';').unwrap_or(left)))
}

#[cfg(test)]
mod tests {
    use super::{decoded, may_be_encoded};

    #[test]
    fn one_level_of_encoding_is_taken_away() {
        for (text, expected) in [
            ("a aGVsbG8gd29ybGQsIGhlbGxvIG1vb24= b", "hello world, hello moon"),
            ("aGVsbG8gd29ybGQsIGhlbGxvIG1vb24", "hello world, hello moon"),
            ("68656c6c6f20776f726c6420616e6420", "hello world and "),
            ("hello%20%77orld", "hello world"),
            (r"\u0041\x42\u{43}\n", "ABC\n"),
            ("100% sure %41", "100% sure A"),
            ("&#72;&#x69; &#you", "Hi #you"),
        ] {
            let texts: Vec<String> = decoded(text).into_iter().map(|found| found.text).collect();
            assert!(texts.iter().any(|text| text == expected), "{text}: {texts:?}");
            assert!(may_be_encoded(text), "{text}");
        }
    }

    #[test]
    fn plain_text_is_not_decoded() {
        for text in
            ["", "hello world", "/workspace/source/components/main.rs", "2026-09-24T12:00:00Z"]
        {
            assert!(!may_be_encoded(text), "{text}");
            assert!(decoded(text).is_empty(), "{text}");
        }
        // Random bytes are no text.
        assert!(decoded("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b").is_empty());
    }
}
