//! How lines look on a terminal: how many columns there are, and which words have a colour.

use std::env;
use std::io::{IsTerminal, stdout};

use rustix::termios::tcgetwinsize;

/// Columns where no terminal says how many it has.
const WIDTH: usize = 80;
/// The fewest columns that lines are fitted to.
const LEAST: usize = 60;

/// Words that tell how something ended, by their colour: red, yellow, green.
const COLOURS: [(&str, &[&str]); 3] = [
    ("31", &["deny", "denied", "failed", "revoked", "WRONG", "NOT VALID", "NOT CLEAN", "INVALID"]),
    ("33", &["cancelled", "incomplete", "pending", "expired", "note", "unreadable"]),
    ("32", &["allow", "completed", "approved", "used", "valid", "clean", "ok", "holds"]),
];

/// How lines look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Whether words have colours.
    pub(crate) has_colour: bool,
    /// How many columns lines are fitted to.
    pub(crate) width: usize,
}

impl Default for Look {
    /// As in a pipe or a file.
    fn default() -> Self {
        Self { has_colour: false, width: WIDTH }
    }
}

impl Look {
    /// As standard output has it. `NO_COLOR` turns colours off, as does a terminal that has none.
    pub(crate) fn of_output() -> Self {
        if !stdout().is_terminal() {
            return Self::default();
        }
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = env::var_os("TERM").is_none_or(|value| value == "dumb");
        let columns = tcgetwinsize(stdout()).map_or(0, |size| usize::from(size.ws_col));
        let width = if columns == 0 { WIDTH } else { columns.max(LEAST) };
        Self { has_colour: !is_set("NO_COLOR") && !is_dumb, width }
    }

    /// A word in the colour of what it tells.
    pub(crate) fn painted(&self, word: &str) -> String {
        let colour = COLOURS.iter().find(|(_, words)| words.contains(&word.trim_end()));
        match colour.filter(|_| self.has_colour) {
            Some((colour, _)) => format!("\x1b[{colour}m{word}\x1b[0m"),
            None => word.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Look;

    #[test]
    fn a_verdict_has_the_colour_of_what_it_tells_where_there_are_colours() {
        let coloured = Look { has_colour: true, ..Look::default() };
        for (word, expected) in [
            ("deny", "\u{1b}[31mdeny\u{1b}[0m"),
            ("allow ", "\u{1b}[32mallow \u{1b}[0m"),
            ("pending", "\u{1b}[33mpending\u{1b}[0m"),
            ("observed", "observed"),
        ] {
            assert_eq!(coloured.painted(word), expected);
            assert_eq!(Look::default().painted(word), word);
        }
    }
}
