//! `cargo xtask requirements`: which promises of the specification a test covers.

mod covers;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::Usage;
use crate::output::{complain, say};
use crate::steps::Outcome;
use crate::tree;

/// Where the requirements are written down.
pub(crate) const FILE: &str = "spec/requirements.toml";

/// How binding a requirement is.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Must,
    Should,
    May,
    /// Stated as a fact.
    Promise,
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
            Self::Promise => "promise",
        }
    }
}

/// One requirement, and the tests that cover it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    id: String,
    source: String,
    level: Level,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<String>,
    /// `path:line` of each `covers:` comment that names it.
    #[serde(skip_deserializing)]
    covered_by: Vec<String>,
}

impl Requirement {
    /// The document it is from: `000 WIRE` for `WIRE-001` of source `000 Surface Model`.
    fn document(&self) -> String {
        let number = self.source.split(' ').next().unwrap_or_default();
        let prefix = self.id.split('-').next().unwrap_or_default();
        format!("{number} {prefix}")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    requirement: Vec<Requirement>,
}

/// How much of one document is covered.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Count {
    covered: usize,
    total: usize,
}

/// Requirements and tests, brought together.
#[derive(Debug, Serialize)]
pub(crate) struct Coverage {
    documents: BTreeMap<String, Count>,
    requirements: Vec<Requirement>,
    /// Repeated ids, and ids in tests that no requirement has.
    pub(crate) problems: Vec<String>,
}

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    json: bool,
    /// Only requirements that no test covers, and whose id begins with this.
    uncovered: Option<String>,
}

impl Options {
    fn read(arguments: &[String]) -> Result<Self, Usage> {
        let mut options = Self::default();
        let mut arguments = arguments.iter().map(String::as_str).peekable();
        while let Some(argument) = arguments.next() {
            match argument {
                "--json" => options.json = true,
                "--uncovered" => {
                    let prefix = arguments.next_if(|next| !next.starts_with('-'));
                    options.uncovered = Some(prefix.unwrap_or_default().to_owned());
                }
                other => {
                    let expected = "--json, --uncovered [PREFIX]";
                    let message = format!("unknown argument `{other}`, expected {expected}");
                    return Err(Usage(message));
                }
            }
        }
        Ok(options)
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let options = Options::read(arguments)?;
    let mut coverage = Coverage::read(&tree::root())?;
    if let Some(prefix) = &options.uncovered {
        coverage.keep_uncovered(prefix)?;
    }
    if options.json {
        say!("{}", serde_json::to_string_pretty(&coverage)?);
    } else {
        if options.uncovered.is_none() {
            coverage.print_documents();
            say!("");
        }
        coverage.print_uncovered();
    }
    coverage.print_problems();
    Ok(coverage.problems.is_empty())
}

impl Coverage {
    /// Reads requirements and tests below `root`.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(FILE)).with_context(|| format!("no `{FILE}`"))?;
        let file: File = toml::from_str(&text).with_context(|| format!("in `{FILE}`"))?;
        Ok(Self::new(file.requirement, covers::scan(root)?))
    }

    fn new(mut requirements: Vec<Requirement>, mentions: Vec<covers::Mention>) -> Self {
        let mut problems = Vec::new();
        let mut seen = BTreeSet::new();
        for requirement in &requirements {
            if !seen.insert(requirement.id.clone()) {
                problems.push(format!("`{FILE}` has `{}` twice", requirement.id));
            }
        }
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for covers::Mention { id, place } in mentions {
            if seen.contains(&id) {
                places.entry(id).or_default().push(place);
            } else {
                problems.push(format!("{place}: expected an id of `{FILE}`, found `{id}`"));
            }
        }
        let mut documents: BTreeMap<String, Count> = BTreeMap::new();
        for requirement in &mut requirements {
            requirement.covered_by = places.remove(&requirement.id).unwrap_or_default();
            let count = documents.entry(requirement.document()).or_default();
            count.total += 1;
            count.covered += usize::from(!requirement.covered_by.is_empty());
        }
        Self { documents, requirements, problems }
    }

    /// Leaves the requirements that no test covers and whose id begins with `prefix`.
    fn keep_uncovered(&mut self, prefix: &str) -> Result<(), Usage> {
        self.requirements.retain(|one| one.id.starts_with(prefix));
        if self.requirements.is_empty() {
            return Err(Usage(format!("no id of `{FILE}` begins with `{prefix}`")));
        }
        self.requirements.retain(|one| one.covered_by.is_empty());
        Ok(())
    }

    /// Whether the ids are sound. Requirements that no test covers are no failure yet.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.problems.len() {
            0 => Outcome::Passed,
            count => Outcome::Failed(format!("{count} unknown or repeated ids")),
        }
    }

    /// Prints how much of each document is covered.
    pub(crate) fn print_documents(&self) {
        let all = Count {
            covered: self.documents.values().map(|count| count.covered).sum(),
            total: self.documents.values().map(|count| count.total).sum(),
        };
        say!("{:12} {:>7} {:>7} {:>8}", "document", "covered", "total", "share");
        for (name, count) in self.documents.iter().map(|(name, count)| (name.as_str(), count)) {
            say!("{}", count.row(name));
        }
        say!("{}", all.row("all"));
    }

    /// Prints ids that are unknown or repeated.
    pub(crate) fn print_problems(&self) {
        for problem in &self.problems {
            complain(format_args!("error: {problem}"));
        }
    }

    /// Prints the requirements that no test covers.
    fn print_uncovered(&self) {
        let uncovered = self.requirements.iter().filter(|one| one.covered_by.is_empty());
        let uncovered: Vec<&Requirement> = uncovered.collect();
        let width = uncovered.iter().map(|one| one.id.len()).max().unwrap_or_default();
        say!("not covered: {}", uncovered.len());
        for Requirement { id, level, text, .. } in uncovered {
            say!("  {id:width$}  {:7}  {text}", level.name());
        }
    }
}

impl Count {
    fn row(&self, name: &str) -> String {
        let Self { covered, total } = self;
        let tenths = (covered * 1000).checked_div(*total).unwrap_or_default();
        let share = format!("{}.{} %", tenths / 10, tenths % 10);
        format!("{name:12} {covered:>7} {total:>7} {share:>8}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Count, Coverage, FILE, Options};
    use crate::steps::Outcome;
    use crate::tidy::fixture::Tree;

    fn entry(id: &str) -> String {
        format!("[[requirement]]\nid = '{id}'\nsource = '000 Frames'\nlevel = 'must'\ntext = 'x'\n")
    }

    fn coverage(ids: &[&str], test: &str) -> Coverage {
        let file: String = ids.iter().map(|id| entry(id)).collect();
        let tree = Tree::new(&[(FILE, &file), ("crates/a/tests/a.rs", test)]);
        Coverage::read(tree.root()).unwrap()
    }

    #[test]
    fn tests_and_requirements_meet() {
        let found =
            coverage(&["WIRE-001", "WIRE-002", "CKP-001"], "//! A.\n// covers: WIRE-002, CKP-001");
        assert_eq!(found.outcome(), Outcome::Passed);
        assert_eq!(found.documents["000 WIRE"], Count { covered: 1, total: 2 });
        assert_eq!(found.documents["000 CKP"], Count { covered: 1, total: 1 });
        assert_eq!(found.requirements[1].covered_by, ["crates/a/tests/a.rs:2"]);
        assert!(found.requirements[0].covered_by.is_empty());
    }

    #[test]
    fn unknown_and_repeated_ids_are_problems() {
        let found = coverage(&["WIRE-001", "WIRE-001"], "// covers: WIRE-001..WIRE-002");
        assert_eq!(
            found.problems,
            [
                "`spec/requirements.toml` has `WIRE-001` twice",
                "crates/a/tests/a.rs:1: expected an id of `spec/requirements.toml`, found `WIRE-002`",
            ]
        );
        assert!(matches!(found.outcome(), Outcome::Failed(_)));
    }

    #[test]
    fn what_no_test_covers_is_listed_by_the_beginning_of_its_id() {
        let ids = ["WIRE-001", "WIRE-002", "WIRE-010", "CKP-001"];
        let left = |prefix: &str| {
            let mut found = coverage(&ids, "// covers: WIRE-001");
            found.keep_uncovered(prefix).map(|()| {
                found.requirements.into_iter().map(|one| one.id).collect::<Vec<_>>().join(" ")
            })
        };
        for (prefix, expected) in [
            ("", "WIRE-002 WIRE-010 CKP-001"),
            ("WIRE", "WIRE-002 WIRE-010"),
            ("WIRE-00", "WIRE-002"),
            ("WIRE-001", ""),
            ("CKP", "CKP-001"),
        ] {
            assert_eq!(left(prefix).unwrap(), expected, "{prefix}");
        }
        let error = left("wire").unwrap_err().to_string();
        assert!(error.contains("begins with `wire`"), "{error}");
    }

    #[test]
    fn the_arguments_come_in_any_order() {
        let read = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::read(&words)
        };
        let options = |json, uncovered: Option<&str>| Options {
            json,
            uncovered: uncovered.map(str::to_owned),
        };
        for (line, expected) in [
            ("", options(false, None)),
            ("--json", options(true, None)),
            ("--uncovered", options(false, Some(""))),
            ("--uncovered WIRE", options(false, Some("WIRE"))),
            ("--uncovered --json", options(true, Some(""))),
            ("--json --uncovered WIRE-00", options(true, Some("WIRE-00"))),
        ] {
            assert_eq!(read(line).unwrap(), expected, "{line}");
        }
        for line in ["WIRE", "--uncovered WIRE CKP", "--jsn"] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains("expected --json, --uncovered [PREFIX]"), "{line}: {error}");
        }
    }

    #[test]
    fn a_file_that_does_not_parse_is_an_error() {
        for text in ["[[requirement]]\nid = 'WIRE-001'", "x = 1", &format!("{}z = 1", entry("A-1"))]
        {
            let tree = Tree::new(&[(FILE, text)]);
            assert!(Coverage::read(tree.root()).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_aligned_and_never_rounded_up() {
        let row = |covered, total| Count { covered, total }.row("000 WIRE");
        assert_eq!(row(2, 3), "000 WIRE           2       3   66.6 %");
        assert_eq!(row(1, 1), "000 WIRE           1       1  100.0 %");
        assert_eq!(row(0, 0), "000 WIRE           0       0    0.0 %");
    }
}
