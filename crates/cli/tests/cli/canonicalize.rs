//! `chio canonicalize`.

use chio_testkit::golden;

use crate::support::Folder;

#[track_caller]
fn check(words: &[&str], input: &str, expected: &str) {
    let run = Folder::new().run_with(input.as_bytes(), words).ends(0);
    assert_eq!(run.stdout, expected, "{input}");
    assert_eq!(run.stderr, "");
}

#[test]
fn the_output_is_exactly_the_canonical_bytes() {
    check(
        &["canonicalize"],
        "{\"b\": 1.0, \"a\": [true, \"\\u00e9\\/\"]}\n",
        r#"{"a":[true,"é/"],"b":1}"#,
    );
    check(&["canonicalize", "-"], " \"\\u007f\" ", "\"\u{7f}\"");
    check(&["canonicalize"], "18446744073709551615", "18446744073709551615");
    check(&["canonicalize", "--strict"], "{\"n\": 0.5, \"m\": 1}", r#"{"m":1,"n":0.5}"#);
}

#[test]
fn the_golden_texts_come_out_as_they_should() {
    let folder = Folder::new();
    for case in golden::load("canonical")["cases"].as_array().unwrap() {
        let input = case["input_json"].as_str().unwrap();
        let strict = folder.run_with(input.as_bytes(), &["canonicalize", "--strict"]);
        assert_eq!(strict.code == 1, case["strict_error"].as_bool().unwrap(), "{input}");
        assert_eq!(strict.stdout, case["strict_canonical"].as_str().unwrap_or_default());
        // Two members of one name have no one meaning, with or without `--strict`.
        if input != r#"{"a":1,"a":2}"# {
            let run = folder.run_with(input.as_bytes(), &["canonicalize"]).ends(0);
            assert_eq!(run.stdout, case["typed_canonical"].as_str().unwrap(), "{input}");
        }
    }
}

#[test]
fn a_file_can_be_named() {
    let folder = Folder::new();
    folder.write("a.json", "[ 1 ]");
    assert_eq!(folder.line("canonicalize a.json").ends(0).stdout, "[1]");
}

#[test]
fn texts_with_more_than_one_meaning_are_refused() {
    let folder = Folder::new();
    let nested = "[".repeat(97) + &"]".repeat(97);
    for (input, problem) in [
        (r#"{"a": 1, "a": 2}"#, "found `a` twice"),
        (r#"[{"x": {"b": 1, "\u0062": 2}}]"#, "found `b` twice"),
        (nested.as_str(), "levels of nesting"),
        ("{", "not JSON"),
        ("", "not JSON"),
        ("1 2", "not JSON"),
        ("\u{feff}1", "not JSON"),
    ] {
        let run = folder.run_with(input.as_bytes(), &["canonicalize"]).ends(1);
        let run = run.complains("error: ").complains(problem);
        assert_eq!(run.stdout, "");
        assert!(run.stderr.contains("invalid_request_shape (1002)"), "{run:?}");
    }
}

#[test]
fn strict_refuses_numbers_that_would_change() {
    let folder = Folder::new();
    for input in ["1.0", "1e2", "9007199254740993", "0.1000000000000000055511151231257827"] {
        folder.run_with(input.as_bytes(), &["canonicalize"]).ends(0);
        let run = folder.run_with(input.as_bytes(), &["canonicalize", "--strict"]).ends(1);
        assert_eq!(run.stdout, "", "{input}");
    }
}

#[test]
fn more_than_16_mib_are_refused() {
    let folder = Folder::new();
    let most = 16 << 20;
    let text = format!("\"{}\"", "x".repeat(most - 2));
    assert_eq!(folder.run_with(text.as_bytes(), &["canonicalize"]).ends(0).stdout.len(), most);
    let text = format!("\"{}\"", "x".repeat(most - 1));
    folder.run_with(text.as_bytes(), &["canonicalize"]).ends(1).complains("at most 16 MiB");
}
