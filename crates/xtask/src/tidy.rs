//! The architecture as tests: each rule is a function that lists what breaks it.

pub(crate) mod fixture;
mod layers;
mod sources;

use std::path::Path;

use crate::requirements::{self, Coverage};
use crate::tree;

/// One line for each thing that breaks a rule.
type Violations = anyhow::Result<Vec<String>>;

fn check(rule: fn(&Path) -> Violations) {
    let found = rule(&tree::root()).unwrap();
    assert!(found.is_empty(), "{} violations:\n{}", found.len(), found.join("\n"));
}

/// Tests name requirements that exist.
fn unknown_requirements(root: &Path) -> Violations {
    if !root.join(requirements::FILE).exists() {
        return Ok(Vec::new());
    }
    Ok(Coverage::read(root)?.problems)
}

#[test]
fn packages_use_only_the_layers_below_them() {
    check(layers::violations);
}

#[test]
fn every_file_says_what_it_is_for() {
    check(sources::without_header);
}

#[test]
fn names_are_found_where_the_module_tree_says() {
    check(sources::hidden_names);
}

#[test]
fn files_can_be_read_in_one_sitting() {
    check(sources::long_files);
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    check(sources::machine_paths);
}

#[test]
fn tests_name_requirements_that_exist() {
    check(unknown_requirements);
}

#[test]
fn an_unknown_requirement_is_found() {
    let test = ("crates/a/tests/b.rs", "//! B.\n// covers: WIRE-999\n");
    let without_file = fixture::Tree::new(&[test]);
    assert!(unknown_requirements(without_file.root()).unwrap().is_empty());
    let with_file = fixture::Tree::new(&[test, (requirements::FILE, "requirement = []")]);
    assert_eq!(unknown_requirements(with_file.root()).unwrap().len(), 1);
}
