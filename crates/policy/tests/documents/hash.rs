//! The hash of a policy is over what it means, not over how it is written.

use std::path::Path;

use chio_policy::document::{hash, of_text};
use chio_yaml::parse;

fn of(text: &str) -> String {
    hash(&parse(text, "p").unwrap(), &[])
}

const ONE: &str = r#"
hushspec: "0.1.0"
rules:
  egress: {allow: [a.example, b.example], default: block}
  velocity: {max_requests_per_agent: 600, burst_factor: 2}
"#;

#[test]
fn layout_comments_quotes_and_the_order_of_members_do_not_count() {
    for same in [
        "# a comment\nrules:\n  velocity:\n    burst_factor: 2\n    max_requests_per_agent: 600\n  \
         egress:\n    default: 'block'\n    allow:\n    - a.example\n    - \"b.example\"\nhushspec: 0.1.0\n",
        "{hushspec: \"0.1.0\", rules: {velocity: {burst_factor: 2.0, max_requests_per_agent: 0x258}, \
         egress: {default: block, allow: [a.example, b.example]}}}",
        "hushspec: \"0.1.0\"\nname: x\ndescription: y\nmerge_strategy: merge\nrules: {egress: {allow: \
         [a.example, b.example], default: block}, velocity: {max_requests_per_agent: 600, \
         burst_factor: 2}}",
    ] {
        assert_eq!(of(same), of(ONE), "{same}");
    }
}

#[test]
fn everything_that_can_change_a_verdict_counts() {
    let mut seen = vec![of(ONE)];
    for (from, to) in [
        ("a.example, b.example", "b.example, a.example"),
        ("a.example, b.example", "a.example"),
        ("block", "allow"),
        ("600", "601"),
        ("600", "\"600\""),
        ("burst_factor: 2", "burst_factor: 2.5"),
        ("egress:", "egres:"),
        ("rules:", "extensions:"),
    ] {
        let other = of(&ONE.replacen(from, to, 1));
        assert!(!seen.contains(&other), "{from} → {to}");
        seen.push(other);
    }
}

#[test]
fn files_that_belong_to_it_count_by_name_and_content_in_any_order() {
    let root = parse(ONE, "p").unwrap();
    let with = |files: &[(&str, &[u8])]| hash(&root, files);
    let two = with(&[("a.cedar", b"one"), ("b.cedar", b"two")]);
    assert_eq!(two, with(&[("b.cedar", b"two"), ("a.cedar", b"one")]));
    for other in [
        with(&[]),
        with(&[("a.cedar", b"one")]),
        with(&[("a.cedar", b"two"), ("b.cedar", b"one")]),
        with(&[("a.cedar", b"one"), ("c.cedar", b"two")]),
    ] {
        assert_ne!(two, other);
    }
}

#[test]
fn a_document_that_extends_another_is_what_both_say_together() {
    let nowhere = Path::new("nowhere");
    let written_out = of_text("hushspec: \"0.1.0\"\nextends: default\n", "p", nowhere).unwrap();
    let itself = chio_policy::document::load("default", nowhere).unwrap();
    assert_eq!(hash(&written_out.root, &[]), hash(&itself.root, &[]));
}

#[test]
fn a_hash_never_changes_by_accident() {
    let hash = of("hushspec: \"0.1.0\"\nrules: {egress: {allow: [example.com]}}\n");
    assert_eq!(hash, "0670a6356263eaf3d8173cbf71474967cab9e90ee85dd4954a5502254c659be4");
}
