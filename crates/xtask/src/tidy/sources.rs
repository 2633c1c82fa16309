//! What source files look like, where the compiler and clippy do not say.

use std::path::Path;

use super::Violations;
use crate::tree::{self, Text};

/// No file is longer, tests aside.
const MAX_LINES: usize = 600;

// Written in two parts, so that these checks do not find themselves.
const SPLICE: &str = concat!("include", "!");
const DETOUR: &str = concat!("#[", "path");
const GLOB: &str = concat!("super::", "*");
const MACHINE_PATHS: [&str; 3] =
    [concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/")];

fn rust(root: &Path) -> anyhow::Result<Vec<Text>> {
    tree::texts(root, &["crates"], |path| path.ends_with(".rs"))
}

/// Every file begins by saying what it is for.
pub(super) fn without_header(root: &Path) -> Violations {
    let bare = rust(root)?.into_iter().filter(|text| !text.content.starts_with("//!"));
    Ok(bare.map(|text| format!("{}: expected `//!` on the first line", text.path)).collect())
}

/// A name is found where the module tree says: no splicing, no detours, no globs.
pub(super) fn hidden_names(root: &Path) -> Violations {
    let mut found = Vec::new();
    for text in rust(root)? {
        if text.path.ends_with("/mod.rs") {
            found.push(format!("{}: expected `name.rs` beside `name/`, found `mod.rs`", text.path));
        }
        let in_tests = lines_in_tests(&text);
        for ((number, line), in_tests) in (1..).zip(text.content.lines()).zip(in_tests) {
            let code = if line.trim_start().starts_with("//") { "" } else { line };
            let glob = code.contains("use ") && code.contains(GLOB) && !in_tests;
            let hits = [(SPLICE, code.contains(SPLICE)), (DETOUR, is_detour(code)), (GLOB, glob)];
            for (what, _) in hits.iter().filter(|(_, hit)| *hit) {
                found.push(format!("{}:{number}: `{what}` hides where names come from", text.path));
            }
        }
    }
    Ok(found)
}

fn is_detour(code: &str) -> bool {
    let conditional = code.trim_start().starts_with("#[cfg_attr") && code.contains("path =");
    code.contains(DETOUR) || conditional
}

/// For each line, whether it belongs to tests: to a test file, or to a `mod` marked
/// `#[cfg(test)]`, which ends, since rustfmt wrote it, at a brace as far to the left.
fn lines_in_tests(text: &Text) -> Vec<bool> {
    let mut answers = Vec::new();
    let mut marked = false;
    let mut end: Option<String> = None;
    for line in text.content.lines() {
        let code = line.trim_start();
        if marked && code.starts_with("mod ") && code.ends_with('{') {
            let indent = line.len() - code.len();
            end = Some(format!("{:indent$}}}", ""));
        }
        marked = code == "#[cfg(test)]" || (marked && code.starts_with("#["));
        answers.push(end.is_some() || tree::is_test(&text.path));
        if end.as_deref() == Some(line) {
            end = None;
        }
    }
    answers
}

/// No file is too long to be read, tests aside.
pub(super) fn long_files(root: &Path) -> Violations {
    let texts = tree::texts(root, &["crates"], |path| !tree::is_test(path))?;
    let lengths = texts.iter().map(|text| (&text.path, text.content.lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > MAX_LINES);
    Ok(long
        .map(|(path, lines)| format!("{path}: {lines} lines, expected at most {MAX_LINES}"))
        .collect())
}

/// No file knows on which machine it was written.
pub(super) fn machine_paths(root: &Path) -> Violations {
    let mut found = Vec::new();
    for text in tree::texts(root, &["crates", "docs", "spec", "README.md"], |_| true)? {
        for (number, line) in (1..).zip(text.content.lines()) {
            let hits = MACHINE_PATHS.iter().filter(|path| has_absolute(line, path));
            found.extend(hits.map(|path| format!("{}:{number}: found `{path}`", text.path)));
        }
    }
    Ok(found)
}

/// Whether a path begins here: `a/home/b` and `host.example/home/` are none of ours.
fn has_absolute(line: &str, path: &str) -> bool {
    let goes_on =
        |before: char| before.is_alphanumeric() || matches!(before, '.' | '_' | '-' | '~');
    line.match_indices(path)
        .filter_map(|(at, _)| line.get(..at))
        .any(|before| !before.ends_with(goes_on))
}

#[cfg(test)]
mod tests {
    use super::{
        DETOUR, GLOB, MAX_LINES, SPLICE, hidden_names, long_files, machine_paths, without_header,
    };
    use crate::tidy::Violations;
    use crate::tidy::fixture::Tree;

    fn check(rule: fn(&std::path::Path) -> Violations, path: &str, text: &str, expected: &[&str]) {
        let tree = Tree::new(&[(path, text)]);
        assert_eq!(rule(tree.root()).unwrap(), expected, "{text}");
    }

    #[test]
    fn a_file_says_what_it_is_for() {
        let path = "crates/a/src/lib.rs";
        check(without_header, path, "//! Purpose.\n", &[]);
        let problem = ["crates/a/src/lib.rs: expected `//!` on the first line"];
        check(without_header, path, "fn main() {}\n", &problem);
        check(without_header, path, "\n//! Late.\n", &problem);
        check(without_header, path, "", &problem);
    }

    #[test]
    fn names_are_not_hidden() {
        let path = "crates/a/src/lib.rs";
        let problem = |what| format!("crates/a/src/lib.rs:2: `{what}` hides where names come from");
        check(hidden_names, path, &format!("//! A.\n{SPLICE}(\"b.rs\");"), &[&problem(SPLICE)]);
        check(hidden_names, path, &format!("//! A.\n{DETOUR} = \"b.rs\"]"), &[&problem(DETOUR)]);
        check(hidden_names, path, &format!("//! A.\nuse {GLOB};"), &[&problem(GLOB)]);
        check(hidden_names, path, &format!("//! A.\n    pub use {GLOB};"), &[&problem(GLOB)]);
        let conditional = "//! A.\n#[cfg_attr(unix, path = \"b.rs\")]";
        check(hidden_names, path, conditional, &[&problem(DETOUR)]);
        check(hidden_names, path, &format!("//! {SPLICE} is not used.\n// {DETOUR}\n"), &[]);
        check(hidden_names, path, "//! A.\nconst A: &str = include_str!(\"b\");\n", &[]);
    }

    #[test]
    fn mod_files_are_found() {
        let problem = "crates/a/src/b/mod.rs: expected `name.rs` beside `name/`, found `mod.rs`";
        check(hidden_names, "crates/a/src/b/mod.rs", "//! B.\n", &[problem]);
    }

    #[test]
    fn test_modules_may_use_globs_until_they_end() {
        let path = "crates/a/src/lib.rs";
        let module = format!("#[cfg(test)]\nmod tests {{\n    use {GLOB};\n}}\n");
        check(hidden_names, path, &module, &[]);
        let problem = ["crates/a/src/lib.rs:5: `super::*` hides where names come from"];
        check(hidden_names, path, &format!("{module}use {GLOB};"), &problem);
        let unmarked = format!("mod tests {{\n    use {GLOB};\n}}\n");
        let problem = ["crates/a/src/lib.rs:2: `super::*` hides where names come from"];
        check(hidden_names, path, &unmarked, &problem);
        check(hidden_names, "crates/a/src/lib/tests.rs", &format!("use {GLOB};"), &[]);
        check(hidden_names, "crates/a/tests/b.rs", &format!("use {GLOB};"), &[]);
    }

    #[test]
    fn long_files_are_found_outside_tests() {
        let text = "x\n".repeat(MAX_LINES + 1);
        let problem = ["crates/a/src/lib.rs: 601 lines, expected at most 600"];
        check(long_files, "crates/a/src/lib.rs", &text, &problem);
        check(long_files, "crates/a/src/lib.rs", &"x\n".repeat(MAX_LINES), &[]);
        check(long_files, "crates/a/src/lib/tests.rs", &text, &[]);
        check(long_files, "crates/a/tests/b.rs", &text, &[]);
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        let home = concat!("/", "home/");
        let problem = [format!("docs/a.md:1: found `{home}`")];
        let problem: Vec<&str> = problem.iter().map(String::as_str).collect();
        for text in [format!("in {home}me"), format!("\"{home}me\""), format!("file://{home}me")] {
            check(machine_paths, "docs/a.md", &text, &problem);
        }
        for text in [format!("https://example.com{home}me"), format!("crates{home}a.rs")] {
            check(machine_paths, "docs/a.md", &text, &[]);
        }
        let problem = [format!("README.md:1: found `{home}`")];
        check(machine_paths, "README.md", &format!("see {home}me"), &[&problem[0]]);
    }
}
