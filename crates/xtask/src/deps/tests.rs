//! A made-up graph with one thing wrong at a time.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::metadata::Metadata;
use super::{Lists, REASONS, REGISTRY, Report, reasons};
use crate::tidy::fixture::Tree;
use crate::tree;

const LISTS: &str = r#"
    licenses.allow = ["MIT", "ISC"]
    bans.deny = [{ crate = "openssl", reason = "rustls" }]
"#;

fn package(name: &str, license: &str, source: Option<&str>) -> Value {
    let id = format!("{name}@1.0.0");
    json!({ "id": id, "name": name, "version": "1.0.0", "license": license, "source": source,
            "dependencies": [] })
}

/// The report about our package `app`, which uses `named`, next to another package.
fn report(other: &Value, named: &str) -> Report {
    let mut app = package("app", "Apache-2.0", None);
    app["dependencies"] =
        json!([{ "name": "sibling", "source": null }, { "name": named, "source": REGISTRY }]);
    let metadata = json!({ "packages": [app, other], "workspace_members": ["app@1.0.0"] });
    let metadata: Metadata = serde_json::from_value(metadata).unwrap();
    let lists: Lists = toml::from_str(LISTS).unwrap();
    Report::new(&metadata, &lists, &BTreeSet::from(["known".to_owned()]))
}

fn check(other: &Value, expected: &[&str]) {
    assert_eq!(report(other, "known").violations, expected);
}

#[test]
fn a_good_package_is_left_alone() {
    check(&package("known", "MIT OR GPL-3.0-only", Some(REGISTRY)), &[]);
}

#[test]
fn licences_must_be_on_the_list() {
    check(
        &package("known", "GPL-3.0-only", Some(REGISTRY)),
        &["known 1.0.0: licence `GPL-3.0-only` is not allowed by `deny.toml`"],
    );
    check(
        &package("known", "MIT ISC", Some(REGISTRY)),
        &[
            "known 1.0.0: licence `MIT ISC` cannot be read: expected the end of `MIT ISC`, found `ISC`",
        ],
    );
    let mut unlicensed = package("known", "MIT", Some(REGISTRY));
    unlicensed["license"] = Value::Null;
    check(&unlicensed, &["known 1.0.0: names no licence"]);
}

#[test]
fn banned_crates_are_refused() {
    check(&package("openssl", "MIT", Some(REGISTRY)), &["openssl 1.0.0: banned by `deny.toml`"]);
    for name in ["chio-kernel", "ckp-wire"] {
        let violation =
            format!("{name} 1.0.0: banned: we do not build on the published implementations");
        check(&package(name, "MIT", Some(REGISTRY)), &[&violation]);
    }
}

#[test]
fn only_the_registry_is_a_source() {
    check(
        &package("known", "MIT", Some("git+https://example.com/known")),
        &["known 1.0.0: expected crates.io as its source, found git+https://example.com/known"],
    );
    check(
        &package("known", "MIT", None),
        &["known 1.0.0: expected crates.io as its source, found a path outside the workspace"],
    );
}

#[test]
fn a_direct_dependency_needs_a_reason() {
    let report = report(&package("other", "MIT", Some(REGISTRY)), "other");
    assert_eq!(report.violations, ["other: used by app, without a row in `docs/dependencies.md`"]);
    assert_eq!((report.packages, report.direct), (1, 1));
}

#[test]
fn several_versions_are_information() {
    let packages = [("1.0.0"), ("2.0.0")].map(|version| {
        let mut package = package("known", "MIT", Some(REGISTRY));
        package["version"] = json!(version);
        package
    });
    let metadata = json!({ "packages": packages, "workspace_members": [] });
    let metadata: Metadata = serde_json::from_value(metadata).unwrap();
    let report = Report::new(&metadata, &toml::from_str(LISTS).unwrap(), &BTreeSet::new());
    assert_eq!(report.repeated, ["known 1.0.0, 2.0.0"]);
    assert!(report.violations.is_empty());
}

#[test]
fn reasons_are_the_first_cells_of_the_table() {
    let page = "# Title\n| crate | why |\n|---|---|\n| `serde` | x |\n| toml | y |\n\nregex\n";
    let tree = Tree::new(&[(REASONS, page)]);
    let found = reasons(tree.root()).unwrap();
    assert!(found.contains("serde") && found.contains("toml") && !found.contains("regex"));
}

#[test]
fn our_own_lists_can_be_read() {
    let lists = Lists::read(&tree::root()).unwrap();
    assert!(lists.licenses.allow.contains("Apache-2.0"));
    assert!(lists.bans.deny.iter().any(|ban| ban.name == "openssl"));
}
