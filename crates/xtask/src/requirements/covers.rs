//! `covers:` comments: a test names the requirements that it proves.

use std::path::Path;

use anyhow::Result;

use crate::tree;

/// Where such comments are looked for: our tests, and the programs and expectations of `clients`.
const PLACES: [&str; 3] = ["crates", "clients", "sdks"];
const ENDINGS: [&str; 7] = [".rs", ".py", ".ts", ".mjs", ".js", ".sh", ".toml"];

/// One id in a comment.
#[derive(Debug)]
pub(crate) struct Mention {
    /// The id, or what stands in its place.
    pub(crate) id: String,
    /// `path:line`.
    pub(crate) place: String,
}

/// Every id in every `covers:` comment below `root`.
pub(crate) fn scan(root: &Path) -> Result<Vec<Mention>> {
    let wanted = |path: &str| ENDINGS.iter().any(|ending| path.ends_with(ending));
    let mut mentions = Vec::new();
    for text in tree::texts(root, &PLACES, wanted)? {
        for (number, line) in (1..).zip(text.content.lines()) {
            let place = format!("{}:{number}", text.path);
            let ids = ids(line).into_iter();
            mentions.extend(ids.map(|id| Mention { id, place: place.clone() }));
        }
    }
    Ok(mentions)
}

/// The ids in a line that is a `covers:` comment. What is neither an id nor a range comes back as
/// it stands, so that it is reported and not lost.
fn ids(line: &str) -> Vec<String> {
    let Some(list) = comment(line).and_then(|comment| comment.strip_prefix("covers:")) else {
        return Vec::new();
    };
    list.split(',').map(str::trim).flat_map(expand).collect()
}

/// The text of a line that is nothing but a comment.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim();
    let text = line.strip_prefix("//").or_else(|| line.strip_prefix("/*"));
    let text = text.or_else(|| line.strip_prefix('*')).or_else(|| line.strip_prefix('#'))?;
    Some(text.trim_start_matches(['/', '!', '*']).trim_end_matches("*/").trim())
}

/// `WIRE-003..WIRE-005` is all three.
fn expand(item: &str) -> Vec<String> {
    range(item).unwrap_or_else(|| vec![item.to_owned()])
}

fn range(item: &str) -> Option<Vec<String>> {
    let (first, last) = item.split_once("..")?;
    let (document, start) = first.trim().rsplit_once('-')?;
    let (same, end) = last.trim().rsplit_once('-')?;
    let (from, to): (u16, u16) = (start.parse().ok()?, end.parse().ok()?);
    let width = start.len();
    (document == same && from <= to)
        .then(|| (from..=to).map(|number| format!("{document}-{number:0width$}")).collect())
}

#[cfg(test)]
mod tests {
    use super::{ids, scan};
    use crate::tidy::fixture::Tree;

    fn check(line: &str, expected: &[&str]) {
        assert_eq!(ids(line), expected, "{line}");
    }

    #[test]
    fn comments_of_every_language_are_read() {
        check("// covers: WIRE-001", &["WIRE-001"]);
        check("    /// covers: WIRE-001, A2A-002", &["WIRE-001", "A2A-002"]);
        check("//! covers: CKP-001", &["CKP-001"]);
        check("# covers: WIRE-001,WIRE-002", &["WIRE-001", "WIRE-002"]);
        check(" * covers: WIRE-001", &["WIRE-001"]);
        check("/* covers: WIRE-001 */", &["WIRE-001"]);
        check("/** covers: WIRE-001 */", &["WIRE-001"]);
    }

    #[test]
    fn ranges_take_in_both_ends() {
        check("// covers: WIRE-009..WIRE-011", &["WIRE-009", "WIRE-010", "WIRE-011"]);
        check("// covers: A2A-001, CKP-002..CKP-002", &["A2A-001", "CKP-002"]);
    }

    #[test]
    fn other_lines_are_not_read() {
        check("let text = \"// covers: WIRE-001\";", &[]);
        check("// What it covers: WIRE-001", &[]);
        check("covers: WIRE-001", &[]);
        check("// coverage: WIRE-001", &[]);
    }

    #[test]
    fn what_is_no_id_is_kept_to_be_reported() {
        check("// covers: WIRE-001 and more", &["WIRE-001 and more"]);
        check("// covers: WIRE-001,", &["WIRE-001", ""]);
        check("// covers:", &[""]);
        check("// covers: WIRE-005..WIRE-003", &["WIRE-005..WIRE-003"]);
        check("// covers: WIRE-001..CKP-003", &["WIRE-001..CKP-003"]);
        check("// covers: WIRE-1..", &["WIRE-1.."]);
    }

    #[test]
    fn the_tree_is_scanned_without_what_is_made() {
        let tree = Tree::new(&[
            ("crates/a/src/lib.rs", "//! A.\n// covers: WIRE-001\n"),
            ("crates/a/target/b.rs", "// covers: WIRE-002\n"),
            ("sdks/typescript/node_modules/b.js", "// covers: WIRE-003\n"),
            ("sdks/python/test.py", "# covers: WIRE-004..WIRE-005\n"),
            ("sdks/python/notes.md", "# covers: WIRE-006\n"),
            ("clients/mcp/steps.mjs", "// covers: WIRE-007\n"),
            ("clients/a2a/expected.toml", "# covers: WIRE-008\n[x]\n"),
            ("clients/mcp/node/node_modules/c.mjs", "// covers: WIRE-009\n"),
        ]);
        let found = scan(tree.root()).unwrap();
        let found: Vec<_> = found.iter().map(|m| format!("{} {}", m.id, m.place)).collect();
        assert_eq!(
            found,
            [
                "WIRE-008 clients/a2a/expected.toml:1",
                "WIRE-007 clients/mcp/steps.mjs:1",
                "WIRE-001 crates/a/src/lib.rs:2",
                "WIRE-004 sdks/python/test.py:1",
                "WIRE-005 sdks/python/test.py:1"
            ]
        );
    }
}
