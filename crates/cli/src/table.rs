//! Lists for people: a header, a line for each row that fits the terminal, and below it what does
//! not fit there.

use anyhow::Result;

use crate::io::Io;
use crate::text;

/// Between columns.
const GAP: &str = "  ";
/// Before what stands below a row.
const INDENT: &str = "    ";
/// How much of a note is shown, in characters.
const MAX_NOTE: usize = 600;

/// One row.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// Its cells, in the order of the columns.
    pub(crate) cells: Vec<String>,
    /// What there is to say besides, where it fits.
    pub(crate) note: String,
}

/// The columns of a list. The last one has the room that is left.
#[derive(Debug)]
pub(crate) struct Table {
    heads: &'static [&'static str],
    widths: Vec<usize>,
    /// The column whose words have colours.
    verdict: usize,
}

impl Table {
    /// Columns as wide as what stands in them.
    pub(crate) fn of(heads: &'static [&'static str], verdict: usize, rows: &[Row]) -> Self {
        let width = |at: usize, head: &str| {
            let cells = rows.iter().filter_map(|row| row.cells.get(at));
            cells.map(|cell| columns(cell)).max().unwrap_or(0).max(columns(head))
        };
        let widths = heads.iter().enumerate().map(|(at, head)| width(at, head)).collect();
        Self { heads, widths, verdict }
    }

    /// Columns of these widths, for rows that come one after another.
    pub(crate) fn fixed(
        heads: &'static [&'static str],
        verdict: usize,
        widths: impl Into<Vec<usize>>,
    ) -> Self {
        Self { heads, widths: widths.into(), verdict }
    }

    /// Writes the header.
    pub(crate) fn head(&self, io: &mut Io<'_>) -> Result<()> {
        let heads = self.heads.iter().map(|head| (*head).to_owned()).collect();
        io.say(self.fitted(heads).join(GAP))
    }

    /// Writes the header and all rows.
    pub(crate) fn write(&self, io: &mut Io<'_>, rows: Vec<Row>) -> Result<()> {
        self.head(io)?;
        rows.into_iter().try_for_each(|row| self.row(io, row))
    }

    /// Writes a row. What there is to say besides stands behind it where it fits, else below.
    pub(crate) fn row(&self, io: &mut Io<'_>, mut row: Row) -> Result<()> {
        let width = io.look.width;
        let before = self.widths.iter().take(row.cells.len().saturating_sub(1));
        let room = width.saturating_sub(before.map(|wide| wide + GAP.len()).sum());
        // Nothing is cut: what is longer than the last column has a line of its own.
        if let Some(last) = row.cells.last_mut().filter(|last| columns(last) > room) {
            let long = std::mem::take(last);
            row.note = format!("{}  {}", long.trim(), row.note);
        }
        let note = text::shortened(row.note.trim_end(), MAX_NOTE);
        let mut cells = self.fitted(row.cells);
        let used = cells.iter().map(|cell| columns(cell) + GAP.len()).sum::<usize>();
        let fits = !note.is_empty() && used + columns(&note) <= width;
        if fits {
            cells.push(note.clone());
        }
        let after = cells.split_off((self.verdict + 1).min(cells.len()));
        let verdict = cells.pop().unwrap_or_default();
        let gap = |cells: &[String]| if cells.is_empty() { "" } else { GAP };
        let (before, behind) = (cells.join(GAP), after.join(GAP));
        let (first, last) = (gap(&cells), gap(&after));
        io.say_verdict(&format!("{before}{first}"), &verdict, &format!("{last}{behind}"))?;
        if fits || note.is_empty() {
            return Ok(());
        }
        let lines = text::filled(&note, width.saturating_sub(INDENT.len()));
        lines.iter().try_for_each(|line| io.say(format_args!("{INDENT}{line}")))
    }

    /// Cells as wide as their columns, but for the last one.
    fn fitted(&self, mut cells: Vec<String>) -> Vec<String> {
        let last = self.widths.len().saturating_sub(1);
        for (at, (cell, wide)) in cells.iter_mut().zip(&self.widths).enumerate() {
            let shown = text::plain(cell).into_owned();
            *cell = if at < last { format!("{shown:<wide$}") } else { shown };
        }
        cells
    }
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Row, Table};
    use crate::io::Io;
    use crate::look::Look;

    fn written(look: Look, rows: &[(&[&str], &str)]) -> String {
        let rows: Vec<Row> = rows
            .iter()
            .map(|(cells, note)| Row {
                cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
                note: (*note).to_owned(),
            })
            .collect();
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let mut io = Io::for_tests(&mut output, &mut errors, Path::new(""));
        io.look = look;
        Table::of(&["AT", "VERDICT", "WHAT"], 1, &rows).write(&mut io, rows).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn a_list_has_a_header_and_what_does_not_fit_stands_below() {
        let long = "word ".repeat(30);
        let text = written(
            Look::default(),
            &[
                (&["1", "allow", "demo/echo"], "by alice"),
                (&["12", "deny", "demo/a\u{1b}b"], &long),
                (&["3", "deny", &"x".repeat(99)], ""),
            ],
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "AT  VERDICT  WHAT");
        assert_eq!(lines[1], "1   allow    demo/echo  by alice");
        assert_eq!(lines[2], "12  deny     demo/a\\u{1b}b");
        assert!(lines[3].starts_with("    word word") && lines[4].starts_with("    word"));
        assert_eq!((lines[5], lines[6].trim()), ("3   deny", &*"x".repeat(76)), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn only_the_verdict_has_a_colour() {
        let look = Look { has_colour: true, width: 80 };
        let text = written(look, &[(&["deny", "deny", "deny"], "")]);
        assert_eq!(text.lines().nth(1), Some("deny  \u{1b}[31mdeny   \u{1b}[0m  deny"));
    }
}
