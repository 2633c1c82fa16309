//! SPDX licence expressions: `(MIT OR Apache-2.0) AND Unicode-3.0`.

/// Whether the licences that `allowed` accepts are enough to use what has this expression.
///
/// # Errors
/// When it is no expression.
pub(crate) fn is_satisfied(
    expression: &str,
    allowed: &dyn Fn(&str) -> bool,
) -> Result<bool, String> {
    // Before SPDX, crates wrote `MIT/Apache-2.0` for a choice.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut parser = Parser { words: spaced.split_whitespace().collect(), allowed };
    parser.words.reverse();
    let answer = parser.any()?;
    match parser.words.pop() {
        None => Ok(answer),
        Some(word) => Err(format!("expected the end of `{expression}`, found `{word}`")),
    }
}

/// Evaluates as it reads. `WITH` binds closest, then `AND`, then `OR`.
struct Parser<'e> {
    /// What is still to be read, the next word last.
    words: Vec<&'e str>,
    allowed: &'e dyn Fn(&str) -> bool,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<bool, String> {
        let mut answer = self.all()?;
        while self.take("OR") {
            answer |= self.all()?;
        }
        Ok(answer)
    }

    fn all(&mut self) -> Result<bool, String> {
        let mut answer = self.one()?;
        while self.take("AND") {
            answer &= self.one()?;
        }
        Ok(answer)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.take("(") {
            let answer = self.any()?;
            return if self.take(")") { Ok(answer) } else { Err("expected `)`".to_owned()) };
        }
        let licence = self.name()?;
        if !self.take("WITH") {
            return Ok((self.allowed)(&licence));
        }
        let exception = self.name()?;
        Ok((self.allowed)(&format!("{licence} WITH {exception}")))
    }

    fn name(&mut self) -> Result<String, String> {
        match self.words.pop() {
            Some(word) if !matches!(word, "(" | ")" | "AND" | "OR" | "WITH") => Ok(word.to_owned()),
            Some(word) => Err(format!("expected a licence, found `{word}`")),
            None => Err("expected a licence, found the end".to_owned()),
        }
    }

    fn take(&mut self, word: &str) -> bool {
        self.words.pop_if(|next| *next == word).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::is_satisfied;

    fn check(expression: &str, expected: bool) {
        let allowed = |licence: &str| {
            ["MIT", "ISC", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].contains(&licence)
        };
        assert_eq!(is_satisfied(expression, &allowed), Ok(expected), "{expression}");
    }

    #[test]
    fn a_single_licence_is_looked_up() {
        check("MIT", true);
        check("GPL-3.0-only", false);
        check("mit", false);
        check("Apache-2.0+", false);
    }

    #[test]
    fn one_side_of_a_choice_is_enough() {
        check("GPL-3.0-only OR MIT", true);
        check("MIT OR GPL-3.0-only", true);
        check("GPL-3.0-only OR MPL-2.0", false);
        check("MIT/Apache-2.0", true);
        check("GPL-3.0-only / MIT", true);
        check("GPL-3.0-only/MPL-2.0", false);
    }

    #[test]
    fn all_of_a_conjunction_is_needed() {
        check("MIT AND ISC", true);
        check("MIT AND GPL-3.0-only", false);
        check("GPL-3.0-only AND MIT", false);
    }

    #[test]
    fn and_binds_closer_than_or_unless_parentheses_say_otherwise() {
        check("MIT OR GPL-3.0-only AND MPL-2.0", true);
        check("(MIT OR GPL-3.0-only) AND MPL-2.0", false);
        check("GPL-3.0-only AND MPL-2.0 OR MIT", true);
        check("ISC AND (Apache-2.0 OR (GPL-3.0-only)) AND MIT", true);
    }

    #[test]
    fn an_exception_makes_another_licence() {
        check("Apache-2.0 WITH LLVM-exception", true);
        check("MIT WITH LLVM-exception", false);
        check("GPL-2.0-only WITH Classpath-exception-2.0 OR ISC", true);
        check("Apache-2.0 WITH LLVM-exception AND GPL-3.0-only", false);
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in ["", "MIT OR", "AND MIT", "(MIT", "MIT)", "MIT ISC", "MIT WITH", "()", "/MIT"] {
            assert!(is_satisfied(text, &|_| true).is_err(), "{text}");
        }
    }
}
