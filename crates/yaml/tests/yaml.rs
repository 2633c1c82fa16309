//! YAML is read strictly, within bounds, and never with a panic.
#![cfg(test)]

use chio_yaml::{MAX_BYTES, MAX_DEPTH, MAX_NODES, NodeKind, parse};
use proptest::prelude::*;
use serde_json::json;

fn problems(text: &str) -> Vec<String> {
    let problems = parse(text, "p").err().unwrap_or_default();
    problems.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn refused(text: &str, part: &str) {
    let problems = problems(text);
    assert!(problems.iter().any(|it| it.contains(part)), "expected {part:?} in {problems:?}");
}

#[test]
fn a_document_becomes_a_tree_with_exact_places() {
    let text = "# first\nname: x\nrules:\n  egress:\n    allow: [a, 'b']\n    list:\n      - 1\n      - k: ~\n";
    let root = parse(text, "p.yaml").unwrap();
    assert_eq!(
        root.to_value(),
        json!({"name": "x", "rules": {"egress": {"allow": ["a", "b"], "list": [1, {"k": null}]}}})
    );
    let egress = root.get("rules").unwrap().get("egress").unwrap();
    assert_eq!(egress.place.to_string(), "p.yaml:5:5");
    assert_eq!(egress.get("allow").unwrap().place.to_string(), "p.yaml:5:12");
    let NodeKind::List(items) = &egress.get("allow").unwrap().kind else { panic!("a list") };
    assert_eq!(items[1].place.to_string(), "p.yaml:5:16");
    let NodeKind::List(items) = &egress.get("list").unwrap().kind else { panic!("a list") };
    assert_eq!(items[1].place.to_string(), "p.yaml:8:9");
    let NodeKind::Map(members) = &root.kind else { panic!("a map") };
    assert_eq!(members[1].0.place.to_string(), "p.yaml:3:1");
}

#[test]
fn columns_count_characters_not_bytes() {
    let root = parse("name: {ä€😀: x}\n", "p").unwrap();
    assert_eq!(root.get("name").unwrap().get("ä€😀").unwrap().place.to_string(), "p:1:13");
}

#[test]
fn all_ways_to_write_text_are_read() {
    for (text, expected) in [
        ("a: x", json!("x")),
        ("a: 'it''s'", json!("it's")),
        (r#"a: "tab\t\u00e9""#, json!("tab\té")),
        ("a: |\n  one\n  two\n", json!("one\ntwo\n")),
        ("a: >-\n  one\n  two\n", json!("one two")),
        ("a: 'true'", json!("true")),
        ("a: yes", json!("yes")),
        ("a: \"5\"", json!("5")),
        ("a: x # not this\n", json!("x")),
        ("a: x#y\n", json!("x#y")),
        ("\u{feff}a: x", json!("x")),
        ("a: x\r\n", json!("x")),
        ("---\na: x\n", json!("x")),
        ("---\na: x\n...\n", json!("x")),
        ("? a\n: x\n", json!("x")),
    ] {
        let root = parse(text, "p").unwrap();
        assert_eq!(root.get("a").unwrap().to_value(), expected, "{text:?}");
    }
}

#[test]
fn nothing_reads_as_nothing() {
    for text in ["", " \n\n", "# a comment\n", "---\n", "~", "\u{feff}"] {
        assert_eq!(parse(text, "p").unwrap().kind, NodeKind::Null, "{text:?}");
    }
}

#[test]
fn numbers_keep_every_digit() {
    let root = parse("[9223372036854775807, -9223372036854775808, 0x10, 0o10, 1.5]", "p").unwrap();
    assert_eq!(root.to_value(), json!([i64::MAX, i64::MIN, 16, 8, 1.5]));
}

#[test]
fn anchors_aliases_merge_keys_and_tags_are_refused() {
    refused("a: &x 1\n", "p:1:4: a value that begins with `&` needs quotes");
    refused("a: &x [1]\nb: *x\n", "p:2:4: a value that begins with `*` needs quotes");
    refused("a: *x\n", "p:1:4: a value that begins with `*` needs quotes");
    refused("a: !x 1\n", "a value that begins with `!` needs quotes");
    refused("a: !!str 1\n", "a value that begins with `!` needs quotes");
    refused("a: !!binary aGk=\n", "a value that begins with `!` needs quotes");
    refused("<<: {a: 1}\n", "p:1:1: merge keys");
}

#[test]
fn an_alias_bomb_is_stopped_at_its_first_anchor() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..40 {
        let before = format!("*a{}, ", level - 1).repeat(9);
        bomb += &format!("a{level}: &a{level} [{before}]\n");
    }
    let problems = problems(&bomb);
    assert!(problems[0].contains("begins with `&`"), "{problems:?}");
    assert!(problems.len() <= 50);
}

#[test]
fn a_name_twice_is_refused_with_both_lines_at_any_depth() {
    refused("a: 1\nb: 2\na: 3\n", "p:3:1: `a` is here a second time; the first is on line 1");
    refused(
        "x:\n  - {k: 1,\n     'k': 2}\n",
        "p:3:6: `k` is here a second time; the first is on line 2",
    );
    refused("a: 1\na: 2\na: 3\n", "p:3:1: `a` is here a second time; the first is on line 1");
}

#[test]
fn names_are_text() {
    refused("1: x\n", "p:1:1: expected a name, found a whole number; put it in quotes");
    refused("true: x\n", "p:1:1: expected a name, found true or false; put it in quotes");
    refused("~: x\n", "p:1:1: expected a name, found nothing; put it in quotes");
    refused("1.5: x\n", "p:1:1: expected a name, found a number; put it in quotes");
    refused(".inf: x\n", "p:1:1: expected a name, found a number; put it in quotes");
    refused(": x\n", "expected a name before the `:`, found nothing");
    refused("[a]: x\n", "expected a name, found a list");
    refused("{a: b}: x\n", "expected a name, found a map");
    assert!(parse("'1': x\non: y\nno: z\n", "p").is_ok());
}

#[test]
fn a_second_document_is_refused() {
    refused("a: 1\n---\nb: 2\n", "p:2:1: a second document begins here");
    refused("---\n---\n", "p:2:1: a second document begins here");
    assert!(!problems("a: 1\n...\nb: 2\n").is_empty());
}

#[test]
fn several_mistakes_are_told_at_once_but_not_without_end() {
    assert_eq!(problems("a: 1\na: 2\n5: 3\nb: .nan\n").len(), 3);
    let many: String = (0..1000).map(|_| "a: 1\n").collect();
    assert_eq!(problems(&many).len(), 50);
}

#[test]
fn size_depth_and_count_are_bounded() {
    let large = format!("a: '{}'\n", "x".repeat(MAX_BYTES));
    refused(&large, "expected a document of at most 1048576 bytes");
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(MAX_DEPTH), "p").is_ok());
    refused(&nested(MAX_DEPTH + 1), "expected at most 64 lists and maps in each other, found more");
    let many = |count: usize| "- a\n".repeat(count);
    assert!(parse(&many(MAX_NODES - 1), "p").is_ok());
    refused(&many(MAX_NODES), "expected at most 100000 values in a document, found more");
}

#[test]
fn documents_that_nest_without_end_are_refused_in_no_time() {
    for (begin, part) in [
        ("[", "in each other"),
        ("{a: ", "in each other"),
        ("- ", "in each other"),
        ("? ", "expected a name, found a map"),
        ("[{a: ", "in each other"),
        ("{", "in each other"),
    ] {
        refused(&begin.repeat(MAX_BYTES / begin.len()), part);
    }
    let stairs: String = (0..1000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    refused(&stairs, "in each other");
}

#[test]
fn every_syntax_error_is_told_in_our_own_words() {
    for text in [
        "a: [b\n",
        "a: {b\n",
        "a: 'b\n",
        "a: \"b\n",
        "a: \"\\q\"\n",
        "a: \"\\x1\"\n",
        "a: b: c\n",
        "a:\n\tb: c\n",
        "a: @b\n",
        "a: `b\n",
        "a: %b\n",
        "- a\nb: c\n",
        "a: b\n- c\n",
        "a: - b\n",
        "a\nb: c\n",
        "a: ]\n",
        "a: }\n",
        "a: |x\n",
        "a: 'b' c\n",
        "a: \"b\" c\n",
        "%YAML 3.0\n---\na: b\n",
        "%FOO\n",
        "a: *\n",
        "a: &\n",
        "a: !<x\n",
        "a: b\n c: d\n",
        "[a, b]]\n",
        "a: [b, c\nd: e\n",
        "{a: b\n",
        "a: >\n  x\n y\n",
        "a: \"\\ud800\"\n",
        "\u{1}",
        "a: \u{0}b\n",
        "--- a: b\n",
        "a: [b}\n",
        "[-]",
        "key: [a,\nb]\n",
        "a: 'b\n---\n'\n",
    ] {
        for problem in problems(text) {
            assert!(!problem.contains("this is not YAML"), "{text:?}: {problem}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_read_or_refused_and_never_panics(text in "\\PC{0,200}") {
        let _read = parse(&text, "p");
    }

    #[test]
    fn any_text_of_yaml_signs_is_read_or_refused_and_never_panics(
        text in "[-:?&*!|>'\"%@`#,\\[\\]{} \n\ta-c0-9~.<]{0,120}",
    ) {
        let _read = parse(&text, "p");
    }

    #[test]
    fn what_is_read_holds_what_was_written(names in prop::collection::btree_set("[a-z]{1,8}", 1..20)) {
        let text: String = names.iter().map(|name| format!("x-{name}: \"{name}\"\n")).collect();
        let root = parse(&text, "p").unwrap();
        for name in &names {
            let value = root.get(&format!("x-{name}")).unwrap().to_value();
            prop_assert_eq!(value, json!(name));
        }
    }
}
