//! Text that came from outside: the form in which a message may repeat it, and whether it can stand
//! as it is.

/// The first characters of a text, at most `max`, without control characters.
#[must_use]
pub fn printable(text: &str, max: usize) -> String {
    text.chars().filter(|character| !character.is_control()).take(max).collect()
}

/// Whether a text is not empty, and has no blanks around it and no control characters.
#[must_use]
pub fn is_sound(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_blanks_around_a_text_are_not_sound() {
        for (text, sound, shown) in [
            ("a b", true, "a b"),
            ("", false, ""),
            (" a", false, " a"),
            ("a\n", false, "a"),
            ("a\u{7f}b", false, "ab"),
            ("äöüßé", true, "äöüß"),
        ] {
            assert_eq!((is_sound(text), &*printable(text, 4)), (sound, shown), "{text:?}");
        }
    }
}
