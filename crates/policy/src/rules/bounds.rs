//! How deep and how long a rule may be, checked before the engine parses it: what it parses, it
//! walks by recursion.

/// How deep brackets may lie in each other.
pub(super) const MAX_DEPTH: usize = 48;
/// How many operators, accesses and choices a rule may have.
pub(super) const MAX_STEPS: usize = 500;

/// Where a text goes beyond the bounds, and which.
pub(super) fn check(text: &str) -> Result<(), (usize, String)> {
    let (mut depth, mut steps) = (0_usize, 0_usize);
    let mut word = "";
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let at = text.len() - rest.len();
        let token = token(rest);
        match next {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => steps = 0,
            '&' | '|' | '+' | '-' | '*' | '!' | '<' | '>' | '=' | '.' | '%' => steps += 1,
            _ => word = token,
        }
        if matches!(word, "if" | "has" | "in" | "like" | "is" | "when" | "unless") {
            steps += 1;
        }
        word = "";
        if depth > MAX_DEPTH {
            let message =
                format!("expected at most {MAX_DEPTH} brackets in each other, found more");
            return Err((at, message));
        }
        if steps > MAX_STEPS {
            let message = format!(
                "expected a rule of at most {MAX_STEPS} operators, found more; write several rules, \
                 or a set and `contains`"
            );
            return Err((at, message));
        }
        rest = rest.strip_prefix(token).unwrap_or_default();
    }
    Ok(())
}

/// The word, the text in quotes, the comment, or the one character that comes next.
fn token(rest: &str) -> &str {
    let until = |end: Option<usize>| rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut chars = rest.chars();
    match chars.next() {
        Some('"') => {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            until(end.map(|(at, _)| at + 1))
        }
        Some('/') if rest.starts_with("//") => until(rest.find('\n')),
        Some(c) if is_word(c) => until(rest.find(|c| !is_word(c))),
        Some(c) => until(Some(c.len_utf8())),
        None => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_quotes_and_comments_does_not_count() {
        let many = "&&".repeat(MAX_STEPS) + &"(".repeat(MAX_DEPTH + 1);
        for text in [
            format!("a == \"{many}\";"),
            format!("a == \"\\\"{many}\\\\\";"),
            format!("// {many}\na;"),
            "a == b;".repeat(MAX_STEPS * 2),
            "(a) && [b] && {c};".repeat(MAX_DEPTH * 2),
            format!("[{}]", "\"x\",".repeat(MAX_STEPS * 3)),
        ] {
            assert_eq!(check(&text), Ok(()), "{text}");
        }
        assert!(check(&many).is_err());
        assert_eq!(
            check(&format!("\"\\\\\"{}", "(".repeat(MAX_DEPTH + 1))).unwrap_err().0,
            4 + MAX_DEPTH
        );
        assert!(check(&"if a then b else ".repeat(MAX_STEPS + 1)).is_err());
        assert_eq!(check("\"without an end"), Ok(()));
    }
}
