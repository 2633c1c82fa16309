//! TOML that people write, with one table of it changed: all the rest stays as it is.

use std::ops::Range;

use toml::{Table, Value};

/// The table of a section, as it is written; none where there is none.
///
/// # Errors
/// When the text is no TOML, or the table is written in a way that is not understood here.
pub(crate) fn get<'a>(text: &'a str, section: &str, name: &str) -> Result<Option<&'a str>, String> {
    if !has(&read(text)?, section, name) {
        return Ok(None);
    }
    let lines = lines_of(text, section, name);
    let lines =
        lines.ok_or_else(|| format!("expected `[{section}.{name}]` on a line of its own"))?;
    Ok(text.get(lines))
}

/// The text with this table of a section, in place of the one that is there.
///
/// # Errors
/// As [`get`], or when something else would change.
pub(crate) fn set(text: &str, section: &str, name: &str, table: &str) -> Result<String, String> {
    let mut changed = remove(text, section, name)?;
    if !changed.is_empty() && !changed.ends_with("\n\n") {
        changed.push_str(if changed.ends_with('\n') { "\n" } else { "\n\n" });
    }
    changed.push_str(table.trim());
    changed.push('\n');
    same_but(text, &changed, section, name)?;
    Ok(changed)
}

/// The text without a table of a section.
///
/// # Errors
/// As [`set`].
pub(crate) fn remove(text: &str, section: &str, name: &str) -> Result<String, String> {
    if get(text, section, name)?.is_none() {
        return Ok(text.to_owned());
    }
    let lines = lines_of(text, section, name).unwrap_or_default();
    let before = text.get(..lines.start).unwrap_or_default().trim_end();
    let behind = text.get(lines.end..).unwrap_or_default();
    let gap = if before.is_empty() { "" } else { "\n" };
    let blank = if gap.is_empty() || behind.is_empty() { "" } else { "\n" };
    let changed = format!("{before}{gap}{blank}{behind}");
    same_but(text, &changed, section, name)?;
    Ok(changed)
}

fn read(text: &str) -> Result<Table, String> {
    text.parse::<Table>().map_err(|error| error.message().to_owned())
}

fn has(document: &Table, section: &str, name: &str) -> bool {
    let section = document.get(section).and_then(Value::as_table);
    section.is_some_and(|section| section.contains_key(name))
}

/// Refuses a change of anything but one table.
fn same_but(before: &str, after: &str, section: &str, name: &str) -> Result<(), String> {
    let without = |text: &str| -> Result<Table, String> {
        let mut document = read(text)?;
        if let Some(tables) = document.get_mut(section).and_then(Value::as_table_mut) {
            tables.remove(name);
            if tables.is_empty() {
                document.remove(section);
            }
        }
        Ok(document)
    };
    match without(before)? == without(after)? {
        true => Ok(()),
        false => Err("it cannot be changed without changing something else".to_owned()),
    }
}

/// The lines of a table and of those inside of it: from its header to the next one.
fn lines_of(text: &str, section: &str, name: &str) -> Option<Range<usize>> {
    let headers = [format!("{section}.{name}"), format!("{section}.\"{name}\"")];
    let is_its = |line: &str| {
        let header = line.trim().trim_start_matches('[').split(']').next().unwrap_or_default();
        let inside =
            |own: &String| header.strip_prefix(own.as_str()).is_some_and(|it| it.starts_with('.'));
        headers.iter().any(|own| header == own || inside(own))
    };
    let (mut at, mut found) = (0, None);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('[') {
            match (&found, is_its(line)) {
                (None, true) => found = Some(at),
                (Some(start), false) => return Some(*start..at),
                _ => {}
            }
        }
        at += line.len();
    }
    found.map(|start| start..text.len())
}

#[cfg(test)]
mod tests {
    use super::{get, remove, set};

    const TABLE: &str = "[s.n]\ncommand = \"c\"\n";

    #[test]
    fn a_table_is_put_in_and_taken_out_and_the_rest_stays_as_it_is_written() {
        for (before, after) in [
            ("", "[s.n]\ncommand = \"c\"\n".to_owned()),
            ("# mine\nmodel = 'x'\n", format!("# mine\nmodel = 'x'\n\n{TABLE}")),
            ("[s.n]\ncommand = \"old\"\n[s.n.env]\nA = \"1\"\n\n[t]\n", format!("[t]\n\n{TABLE}")),
        ] {
            let found = set(before, "s", "n", TABLE).unwrap();
            assert_eq!(found, after, "{before}");
            assert_eq!(get(&found, "s", "n").unwrap(), Some(TABLE));
            let gone = remove(&found, "s", "n").unwrap();
            assert_eq!(get(&gone, "s", "n").unwrap(), None, "{gone}");
        }
        assert_eq!(remove("a = 1\n\n[s.n]\nb = 2\n", "s", "n").unwrap(), "a = 1\n");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in
            ["a = ", "[s]\nn = {command = \"c\"}\n", "x = \"\"\"\n[s.n]\n\"\"\"\n[s.n]\na = 1\n"]
        {
            assert!(set(text, "s", "n", TABLE).is_err(), "{text}");
        }
    }
}
