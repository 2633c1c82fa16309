//! Each constraint against arguments: a row a case.

use serde_json::json;

use super::*;
use crate::capability::{
    ApprovalThreshold, ContentReviewTier, CumulativeThreshold, OperationClass,
};
use crate::governance::ProvenanceClass;
use crate::money::MonetaryAmount;
use crate::tier::{AutonomyTier, RuntimeAssurance, SafetyTier};

/// Whether the constraint holds for these arguments; it must be able to tell.
#[track_caller]
fn check(constraint: &Constraint, arguments: &Value, expected: bool) {
    let outcome = constraint.matches(arguments, None, &Patterns::default()).unwrap();
    let holds = match &outcome {
        Match::Holds => true,
        Match::Fails(reason) => {
            assert!(!reason.is_empty());
            false
        }
        Match::LeftTo(stage) => panic!("left to {stage:?}"),
    };
    assert_eq!(holds, expected, "{constraint:?} and {arguments}: {outcome:?}");
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

// Paths.

#[track_caller]
fn check_path(prefix: &str, path: &str, expected: bool) {
    check(&Constraint::PathPrefix(prefix.to_owned()), &json!({ "path": path }), expected);
}

#[test]
fn a_path_lies_under_its_prefix_by_whole_segments() {
    for (prefix, path, expected) in [
        ("/data", "/data", true),
        ("/data", "/data/", true),
        ("/data", "/data/a.txt", true),
        ("/data", "/data/a/b/c", true),
        ("/data/", "/data/a", true),
        ("/data/", "/data", true),
        ("/data", "/dataspace", false),
        ("/data", "/datas", false),
        ("/data", "/dat", false),
        ("/data", "/", false),
        ("/data", "/Data/a", false),
        ("/data/a", "/data/b", false),
        ("/data/a", "/data", false),
        ("/data", "/house/data", false),
        ("/", "/", true),
        ("/", "/anything/at/all", true),
        ("//data//a/", "/data/a/b", true),
        ("/data", "//data///a", true),
        ("/data", "/./data/./a/.", true),
        ("/./data/.", "/data/a", true),
        ("/data/é", "/data/é/x", true),
        ("/data/e\u{301}", "/data/é/x", false),
        ("/data", " /data/a", false),
    ] {
        check_path(prefix, path, expected);
    }
}

#[test]
fn a_path_cannot_climb_out() {
    for (prefix, path, expected) in [
        ("/data", "/data/a/../b", true),
        ("/data", "/data/a/..", true),
        ("/data", "/data/..", false),
        ("/data", "/data/../data", true),
        ("/data", "/data/../etc/passwd", false),
        ("/data", "/data/a/../../etc", false),
        ("/data", "/data/./../etc", false),
        ("/data", "/data//../etc", false),
        ("/data", "/..", false),
        ("/data", "/../data/a", false),
        ("/", "/..", false),
        ("/", "/a/../..", false),
        ("/", "/a/../../b", false),
        ("/data/../tmp", "/tmp/a", true),
        ("/data/../tmp", "/data/a", false),
        ("/../data", "/data/a", false),
        ("/data", "/data/...", true),
        ("/data", "/data/..a", true),
        ("/data", "/data/a..", true),
        ("/data", "/data/ ..", true),
        ("data", "..", false),
        ("data", "data/../..", false),
        ("data", "../data/a", false),
        ("data", "data/../data/a", true),
    ] {
        check_path(prefix, path, expected);
    }
}

#[test]
fn backslashes_separate_as_slashes_do() {
    for (prefix, path, expected) in [
        ("/data", "\\data\\a", true),
        ("\\data", "/data/a", true),
        ("/data", "/data\\..\\etc", false),
        ("/data", "/data/..\\etc", false),
        ("/data", "\\data\\..\\..\\etc", false),
        ("/data", "/data\\a/../b", true),
        ("C:\\data", "C:\\data\\a", true),
        ("C:\\data", "C:/data/a", true),
        ("C:\\data", "C:\\data\\..\\windows", false),
        ("C:\\data", "D:\\data\\a", false),
        ("C:\\data", "c:\\data\\a", false),
        ("/data", "C:\\data\\a", false),
        ("\\\\host\\share", "\\\\host\\share\\a", true),
    ] {
        check_path(prefix, path, expected);
    }
}

#[test]
fn absolute_and_relative_paths_never_match_each_other() {
    for (prefix, path, expected) in [
        ("data", "data/a", true),
        ("data", "./data/a", true),
        ("./data", "data/a", true),
        (".", "data/a", true),
        ("", "data/a", true),
        (".", "a", true),
        ("data", "/data/a", false),
        ("/data", "data/a", false),
        ("/data", "./data/a", false),
        (".", "/data", false),
        ("", "/data", false),
        ("/", "data", false),
        ("/", ".", false),
        ("/", "", false),
        ("/data", "", false),
        ("~/data", "~/data/a", true),
        ("~/data", "~/a", false),
        ("/", "~/data", false),
        ("~", "~/../etc", false),
        ("/mnt", "file:///house/a", false),
    ] {
        check_path(prefix, path, expected);
    }
}

#[test]
fn strings_are_paths_by_their_member_or_by_their_looks() {
    let under = Constraint::PathPrefix("/data".to_owned());
    for name in [
        "path",
        "Path",
        "PATH",
        "file_path",
        "filePath",
        "pathname",
        "xpathx",
        "file",
        "FILE",
        "filepath",
        "dir",
        "directory",
        "root",
        "cwd",
        "Cwd",
    ] {
        check(&under, &json!({ name: "/data/a" }), true);
        check(&under, &json!({ name: "secret" }), false);
        check(&under, &json!({ name: ["/data/a", "secret"] }), false);
        check(&under, &json!({ name: "https://host.example/data" }), false);
        check(&under, &json!({"path": "/data/a", "deep": [{ name: {"ignored": "x"} }]}), true);
    }
    for name in ["files", "dirs", "filename", "folder", "text", "roots", "pat_h"] {
        check(&under, &json!({ name: "secret", "path": "/data/a" }), true);
        check(&under, &json!({ name: "secret" }), false);
    }
    // By its looks, whatever the member.
    for outside in ["/etc/passwd", "./a", "../a", "~/a", "a/b", "a\\b", "etc/", "\\", "/"] {
        check(&under, &json!({"path": "/data/a", "text": outside}), false);
        check(&under, &json!({"path": "/data/a", "list": [[outside]]}), false);
        check(&under, &json!({"path": "/data/a", "more": {"x": outside}}), false);
    }
    for harmless in ["https://host.example/etc", "x://a/b\\c", "plain", "", "a.b", "~", ".."] {
        check(&under, &json!({"path": "/data/a", "text": harmless}), true);
    }
}

#[test]
fn every_path_counts_and_there_must_be_one() {
    let under = Constraint::PathPrefix("/data".to_owned());
    for (arguments, expected) in [
        (json!({}), false),
        (json!(null), false),
        (json!([]), false),
        (json!(7), false),
        (json!({"path": 7}), false),
        (json!({"path": null}), false),
        (json!({"text": "no path"}), false),
        (json!("/data/a"), true),
        (json!(["/data/a", "/data/b"]), true),
        (json!(["/data/a", "/etc"]), false),
        (json!({"from": "/data/a", "to": "/data/b"}), true),
        (json!({"from": "/data/a", "to": "/etc"}), false),
        (json!({"paths": ["/data/a", ["/data/b", "/etc"]]}), false),
        (json!({"path": ["a"]}), false),
        (json!({"path": {"inner": "plain"}}), false),
        (json!({"a": {"b": {"cwd": "/data"}}}), true),
        (json!({"path": "/data/a", "n": 1, "ok": true, "none": null}), true),
    ] {
        check(&under, &arguments, expected);
    }
}

// Hosts.

#[track_caller]
fn check_host(text: &str, expected: bool) {
    let exact = Constraint::DomainExact("good.example".to_owned());
    check(&exact, &json!({ "url": text }), expected);
    let glob = Constraint::DomainGlob("good.example".to_owned());
    check(&glob, &json!({ "url": text }), expected);
}

#[test]
fn the_host_of_a_text_is_what_a_client_would_talk_to() {
    for (text, expected) in [
        ("https://good.example", true),
        ("https://good.example/", true),
        ("https://good.example/a/b?c#d", true),
        ("http://good.example:8080/a", true),
        ("HTTPS://GOOD.EXAMPLE/", true),
        ("https://Good.Example", true),
        ("ftp://good.example", true),
        ("x+y.z-1://good.example", true),
        ("  https://good.example  ", true),
        ("https://good.example.", true),
        ("https://.good.example", true),
        ("https://good.example..:443", true),
        ("good.example", true),
        ("good.example:443", true),
        ("good.example/a", true),
        ("good.example?a", true),
        ("good.example#a", true),
        ("user@good.example", true),
        ("https://user@good.example", true),
        ("https://user:secret@good.example:443/a", true),
        ("https://evil.example@good.example", true),
        ("https://a@evil.example@good.example", true),
        ("https://good.example?x=@evil.example", true),
        ("https://good.example/@evil.example", true),
        ("https://good.example#@evil.example", true),
        ("https://evil.example", false),
        ("https://good.example.evil.example", false),
        ("https://goodxexample", false),
        ("https://evilgood.example", false),
        ("https://a.good.example", false),
        ("https://good.example@evil.example", false),
        ("https://good.example:443@evil.example", false),
        ("https://user:good.example@evil.example/", false),
        ("https://good.example%2f@evil.example", false),
        ("https://evil.example#@good.example", false),
        ("https://evil.example?@good.example", false),
        ("https://evil.example/@good.example", false),
        ("https://evil.example\\@good.example", false),
        ("https://evil.example\\.good.example", false),
        ("https://evil.example:80#@good.example:80/", false),
        ("evil.example", false),
        ("evil.example/good.example", false),
        ("good.example@evil.example", false),
        ("https://evil.example https://good.example", false),
        ("go to https://evil.example/", false),
    ] {
        check_host(text, expected);
    }
}

#[test]
fn a_url_whose_host_cannot_be_read_fails_whatever_else_there_is() {
    for text in [
        "http://[::1]/",
        "http://[::1]:80/",
        "http://[::ffff:10.0.0.1]/",
        "http://[v1.good.example]/",
        "https://",
        "https:///path",
        "https://.",
        "https://:80",
        "https://user@",
        "https://intranet/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://good_example.example/",
        "https://good.exam\tple/",
        "https://xn--\u{fc}.example/",
        "https://g\u{f6}\u{f6}d.example/",
        "https://good\u{3002}example/",
        "https://good.example\u{0}/",
        "https://good%2eexample/",
        "https://good.example,evil.example/",
    ] {
        check_host(text, false);
        let both = json!(["https://good.example", text]);
        check(&Constraint::DomainExact("good.example".to_owned()), &both, false);
        check(&Constraint::DomainGlob("*".to_owned()), &both, false);
    }
}

#[test]
fn text_that_names_no_host_is_no_host() {
    let exact = Constraint::DomainExact("good.example".to_owned());
    for text in ["", "hello", "hello world", "a b.c d", "/etc/hosts", "127", "good_host.x y", "é.é"]
    {
        check_host(text, false);
        check(&exact, &json!({"url": "https://good.example", "text": text}), true);
    }
    // Not every text with a dot is meant as a host, but any could be.
    for text in ["3.14", "file.txt", "e.g."] {
        check(&exact, &json!({"url": "https://good.example", "text": text}), false);
    }
}

#[test]
fn every_host_counts_and_there_must_be_one() {
    let exact = Constraint::DomainExact("good.example".to_owned());
    for (arguments, expected) in [
        (json!({}), false),
        (json!(null), false),
        (json!({"n": 1}), false),
        (json!("good.example"), true),
        (json!(["good.example", "GOOD.example:80"]), true),
        (json!(["good.example", "evil.example"]), false),
        (json!({"a": {"b": ["https://good.example"]}, "c": "https://evil.example"}), false),
        (json!({"good.example": 1}), false),
        (json!({"evil.example": "good.example"}), true),
    ] {
        check(&exact, &arguments, expected);
    }
}

#[test]
fn the_granted_domain_is_read_as_hosts_are() {
    for (domain, text, expected) in [
        ("GOOD.Example", "https://good.example", true),
        (" good.example ", "https://good.example", true),
        (".good.example.", "https://good.example", true),
        ("localhost", "http://localhost:3000/a", true),
        ("localhost", "localhost", true),
        ("localhost", "LOCALHOST.", true),
        ("localhost", "http://localhost.evil.example", false),
        ("10.0.0.1", "http://10.0.0.1:80/", true),
        ("10.0.0.1", "http://10.0.0.10/", false),
        ("xn--gd-fkaa.example", "https://xn--gd-fkaa.example/", true),
        ("", "https://good.example", false),
        ("*", "https://good.example", false),
        ("*.example", "https://good.example", false),
    ] {
        check(&Constraint::DomainExact(domain.to_owned()), &json!([text]), expected);
    }
}

#[test]
fn a_star_in_a_domain_stands_for_any_run() {
    for (pattern, host, expected) in [
        ("*", "good.example", true),
        ("**", "good.example", true),
        ("*.good.example", "a.good.example", true),
        ("*.good.example", "a.b.good.example", true),
        ("*.good.example", "good.example", false),
        ("*.good.example", "evilgood.example", false),
        ("*.good.example", "a.good.example.evil.example", false),
        ("*good.example", "evilgood.example", true),
        ("*good.example", "good.example", true),
        ("good.*", "good.example", true),
        ("good.*", "good.evil.example", true),
        ("good.*", "bad.example", false),
        ("*.Good.EXAMPLE", "a.good.example", true),
        ("a*a.example", "a.example", false),
        ("a*a.example", "aa.example", true),
        ("a*b*c.example", "axxbyyc.example", true),
        ("a*b*c.example", "abc.example", true),
        ("a*b*c.example", "acb.example", false),
        ("a*b*b.example", "ab.example", false),
        ("a*b*b.example", "abb.example", true),
        ("*.*", "good.example", true),
        ("*.*.*", "good.example", false),
        ("g??d.example", "good.example", false),
        ("[a-z]*.example", "good.example", false),
        ("good.example", "good.example", true),
        ("good.example", "xgood.example", false),
        ("", "good.example", false),
    ] {
        check(&Constraint::DomainGlob(pattern.to_owned()), &json!({ "host": host }), expected);
    }
}

// Text.

#[test]
fn a_pattern_matches_some_string() {
    for (pattern, arguments, expected) in [
        ("^a+$", json!("aaa"), true),
        ("^a+$", json!(["b", {"x": ["aa"]}]), true),
        ("^a+$", json!(["b", "ab"]), false),
        ("b", json!("abc"), true),
        ("(?i)B", json!("abc"), true),
        ("B", json!("abc"), false),
        ("a", json!({"a": 1}), false),
        ("", json!(""), true),
        ("", json!({}), false),
        (".*", json!(7), false),
        ("^.$", json!("é"), true),
        (r"\d{4}", json!({"year": 2024}), false),
        (r"\d{4}", json!({"year": "2024"}), true),
    ] {
        check(&Constraint::RegexMatch(pattern.to_owned()), &arguments, expected);
    }
}

#[test]
fn no_string_matches_a_denied_pattern() {
    let denied = |patterns: &[&str]| Constraint::MemoryWriteDenyPatterns(strings(patterns));
    for (patterns, arguments, expected) in [
        (&["secret"][..], json!({"text": "a secret"}), false),
        (&["secret"], json!({"text": "nothing"}), true),
        (&["secret"], json!({"secret": "nothing"}), true),
        (&["secret"], json!([["x", {"y": "secret"}]]), false),
        (&["a", "b"], json!("xbx"), false),
        (&["^a$", "^b$"], json!("ab"), true),
        (&[], json!("anything"), true),
        (&["x"], json!({}), true),
        (&[""], json!({}), true),
        (&[""], json!("any"), false),
    ] {
        check(&denied(patterns), &arguments, expected);
    }
}

#[test]
fn a_pattern_that_is_none_is_an_error_and_no_verdict() {
    let huge = format!("(?:{}){{1000}}", r"\pL{1000}");
    for pattern in ["(", "[", "*", "a{2,1}", r"\k<x>", "(?=look)", r"(a)\1", "(?P<n", &huge] {
        for arguments in [json!({}), json!("a"), json!(null)] {
            let bad = Constraint::RegexMatch(pattern.to_owned());
            let error = bad.matches(&arguments, None, &Patterns::default()).unwrap_err();
            assert_eq!(
                error.to_string(),
                "constraint `regex_match` cannot be evaluated: \
                 expected a regular expression of reasonable size",
            );
            let bad = Constraint::MemoryWriteDenyPatterns(strings(&["fine", pattern]));
            let error = bad.matches(&arguments, None, &Patterns::default()).unwrap_err();
            assert!(error.to_string().contains("`memory_write_deny_patterns`"), "{error}");
        }
    }
}

#[test]
fn no_string_is_longer_than_allowed_in_bytes() {
    for (most, arguments, expected) in [
        (3, json!("abc"), true),
        (3, json!("abcd"), false),
        (3, json!("é"), true),
        (3, json!("éé"), false),
        (4, json!("😀"), true),
        (3, json!("😀"), false),
        (0, json!(""), true),
        (0, json!("a"), false),
        (1, json!({"a long member name": "a"}), true),
        (1, json!([["a", {"b": "cc"}]]), false),
        (1, json!([12_345, true, null]), true),
        (0, json!({}), true),
        (u64::MAX, json!("a"), true),
    ] {
        check(&Constraint::MaxLength(most), &arguments, expected);
    }
}

#[test]
fn arguments_are_measured_as_compact_json() {
    for (arguments, size) in [
        (json!(null), 4),
        (json!({}), 2),
        (json!({"a": 1}), 7),
        (json!({"a": [1, 2, "x"]}), 15),
        (json!("é"), 4),
        (json!("\n"), 4),
        // Compact, not canonical: one byte for the number is three here.
        (json!(1.0), 3),
        (json!([1e2]), 7),
    ] {
        assert_eq!(serde_json::to_string(&arguments).unwrap().len(), size, "{arguments}");
        let size = u64::try_from(size).unwrap();
        check(&Constraint::MaxArgsSize(size), &arguments, true);
        check(&Constraint::MaxArgsSize(size - 1), &arguments, false);
    }
    check(&Constraint::MaxArgsSize(0), &json!(null), false);
    check(&Constraint::MaxArgsSize(u64::MAX), &json!(null), true);
}

// Members.

#[test]
fn some_member_of_the_name_has_exactly_the_value() {
    let custom = Constraint::Custom("env".to_owned(), "prod".to_owned());
    for (arguments, expected) in [
        (json!({"env": "prod"}), true),
        (json!({"deep": [{"env": "prod"}]}), true),
        (json!({"env": {"env": "prod"}}), true),
        (json!({"env": "test", "inner": {"env": "prod"}}), true),
        (json!({"env": "test"}), false),
        (json!({"env": "Prod"}), false),
        (json!({"ENV": "prod"}), false),
        (json!({"env": "prod "}), false),
        (json!({"env": ["prod"]}), false),
        (json!({"env": null}), false),
        (json!({"env": true}), false),
        (json!({"prod": "env"}), false),
        (json!("prod"), false),
        (json!(["env", "prod"]), false),
        (json!({}), false),
        (json!(null), false),
    ] {
        check(&custom, &arguments, expected);
    }
    check(&Constraint::Custom("n".to_owned(), "1".to_owned()), &json!({"n": 1}), false);
    check(&Constraint::Custom(String::new(), String::new()), &json!({"": ""}), true);
}

/// The constraint with each of its members, and members that are not among them.
#[track_caller]
fn check_allowlist(constraint: &Constraint, members: &[&str], others: &[&str]) {
    for name in members {
        for name in [(*name).to_owned(), name.to_uppercase()] {
            for (value, expected) in [
                (json!("a"), true),
                (json!("b"), true),
                (json!("c"), false),
                (json!("A"), false),
                (json!(""), false),
                (json!(["a"]), true),
                (json!(["a", "b"]), true),
                (json!(["a", "c"]), false),
                (json!([["a"], [["b"]]]), true),
                (json!([["a"], [["c"]]]), false),
                (json!([["a"], []]), true),
                (json!([]), false),
                (json!([[]]), false),
                (json!(null), false),
                (json!(1), false),
                (json!(true), false),
                (json!({}), false),
                (json!({"x": "a"}), false),
                (json!(["a", null]), false),
                (json!(["a", 1]), false),
                (json!(["a", {"x": "a"}]), false),
            ] {
                check(constraint, &json!({ &name: value }), expected);
                check(constraint, &json!([{"deep": {"x": 1, &name: value}}]), expected);
                check(constraint, &json!({ &name: value, "z": {&name: "c"} }), false);
            }
        }
    }
    // Without such a member there is nothing to hold against the list.
    for name in others {
        for value in [json!("c"), json!(1), json!(["c"]), json!({"x": "c"})] {
            check(constraint, &json!({ *name: value }), true);
        }
    }
    for arguments in [json!({}), json!(null), json!("c"), json!(["c"])] {
        check(constraint, &arguments, true);
    }
}

#[test]
fn messages_go_to_receivers_on_the_list_only() {
    check_allowlist(
        &Constraint::AudienceAllowlist(strings(&["a", "b"])),
        &["recipient", "recipients", "audience", "to", "channel", "channels"],
        &["cc", "from", "store", "recipient_id", "too", "t o", "audiences"],
    );
}

#[test]
fn memory_is_kept_in_stores_on_the_list_only() {
    check_allowlist(
        &Constraint::MemoryStoreAllowlist(strings(&["a", "b"])),
        &["store", "memory_store", "collection", "namespace"],
        &["stores", "to", "memory", "collections", "name_space"],
    );
}

#[test]
fn an_empty_list_allows_nobody_but_asks_for_nobody() {
    for constraint in
        [Constraint::AudienceAllowlist(Vec::new()), Constraint::MemoryStoreAllowlist(Vec::new())]
    {
        check(&constraint, &json!({"to": "a", "store": "a"}), false);
        check(&constraint, &json!({"text": "a"}), true);
    }
}

// Models.

fn model(id: &str, safety_tier: Option<SafetyTier>) -> ModelMetadata {
    ModelMetadata {
        model_id: id.to_owned(),
        safety_tier,
        provider: None,
        provenance_class: ProvenanceClass::Asserted,
    }
}

/// Models that are allowed, the lowest tier, who calls, and whether that is enough.
type ModelCase = (&'static [&'static str], Option<SafetyTier>, Option<ModelMetadata>, bool);

#[test]
fn a_model_is_on_the_list_and_careful_enough() {
    use SafetyTier::{High, Low, Restricted, Standard};
    let cases: [ModelCase; 20] = [
        (&[], None, None, false),
        (&["m"], None, None, false),
        (&[], Some(Low), None, false),
        (&[], None, Some(model("any", None)), true),
        (&["m"], None, Some(model("m", None)), true),
        (&["m", "n"], None, Some(model("n", None)), true),
        (&["m"], None, Some(model("M", None)), false),
        (&["m"], None, Some(model("m-2", None)), false),
        (&["*"], None, Some(model("m", None)), false),
        (&[], Some(Low), Some(model("m", None)), false),
        (&[], Some(Low), Some(model("m", Some(Low))), true),
        (&[], Some(Standard), Some(model("m", Some(Low))), false),
        (&[], Some(Standard), Some(model("m", Some(Standard))), true),
        (&[], Some(High), Some(model("m", Some(Standard))), false),
        (&[], Some(High), Some(model("m", Some(Restricted))), true),
        (&[], Some(Restricted), Some(model("m", Some(High))), false),
        (&[], Some(Restricted), Some(model("m", Some(Restricted))), true),
        (&["m"], Some(High), Some(model("m", Some(High))), true),
        (&["m"], Some(High), Some(model("n", Some(Restricted))), false),
        (&["m"], Some(High), Some(model("m", Some(Low))), false),
    ];
    for (ids, min_safety_tier, model, expected) in cases {
        let allowed_model_ids = strings(ids);
        let requirement = ModelRequirement { allowed_model_ids, min_safety_tier };
        let outcome = Constraint::ModelConstraint(requirement)
            .matches(&Value::Null, model.as_ref(), &Patterns::default())
            .unwrap();
        assert_eq!(outcome == Match::Holds, expected, "{ids:?} {min_safety_tier:?} {model:?}");
    }
    assert!(Low < Standard && Standard < High && High < Restricted);
}

// Everything else.

#[test]
fn what_arguments_cannot_tell_is_left_to_a_later_stage() {
    let cumulative = CumulativeThreshold {
        threshold: MonetaryAmount::new(1, "USD"),
        approval_budget_id: "b".to_owned(),
        approval_budget_epoch: 1,
        cumulative_approval_root_binding: None,
    };
    for (constraint, stage) in [
        (Constraint::GovernedIntentRequired, Stage::Governed),
        (
            Constraint::RequireApprovalAbove(ApprovalThreshold { threshold_units: 0 }),
            Stage::Governed,
        ),
        (Constraint::SellerExact("s".to_owned()), Stage::Governed),
        (Constraint::MinimumRuntimeAssurance(RuntimeAssurance::Verified), Stage::Governed),
        (Constraint::MinimumAutonomyTier(AutonomyTier::Autonomous), Stage::Governed),
        (Constraint::RequireCumulativeApprovalAbove(cumulative), Stage::Budget),
        (Constraint::TableAllowlist(Vec::new()), Stage::Data),
        (Constraint::ColumnDenylist(strings(&["t.c"])), Stage::Data),
        (Constraint::MaxRowsReturned(0), Stage::Data),
        (Constraint::OperationClass(OperationClass::ReadOnly), Stage::Data),
    ] {
        for arguments in [json!({}), json!(null), json!({"seller": "x", "table": "t"})] {
            let outcome =
                constraint.matches(&arguments, Some(&model("m", None)), &Patterns::default());
            assert_eq!(outcome, Ok(Match::LeftTo(stage)), "{constraint:?}");
        }
    }
}

#[test]
fn constraints_that_nobody_can_enforce_always_fail() {
    let tiers = [ContentReviewTier::None, ContentReviewTier::Basic, ContentReviewTier::Strict];
    let constraints = tiers
        .map(Constraint::ContentReviewTier)
        .into_iter()
        .chain(["0", "1.50", "1000000"].map(|n| Constraint::MaxTransactionAmountUsd(n.to_owned())))
        .chain([true, false].map(Constraint::RequireDualApproval));
    for constraint in constraints {
        let expected = format!("constraint `{}` is unsupported", constraint.kind());
        for arguments in [json!({}), json!(null), json!({"amount": "0"})] {
            let outcome =
                constraint.matches(&arguments, Some(&model("m", None)), &Patterns::default());
            assert_eq!(outcome, Ok(Match::Fails(expected.clone())), "{constraint:?}");
        }
    }
}

#[test]
fn regression_urls_that_browsers_complete_are_not_overlooked() {
    for text in [
        r"https://good.example\@evil.example/",
        "https:/evil.example/",
        "https:evil.example",
        "HTTPS:evil.example",
        r"https:\\evil.example",
        "//evil.example/",
        "ht\ttps:/\t/evil.example",
        "/\n/evil.example",
        r"\\evil.example\share",
    ] {
        check_host(text, false);
        let arguments = json!({"url": text, "note": "good.example"});
        check(&Constraint::DomainExact("good.example".to_owned()), &arguments, false);
    }
    check_host("//good.example/a", true);
    let arguments = json!({"url": "good.example", "note": "warning: no URL here"});
    check(&Constraint::DomainExact("good.example".to_owned()), &arguments, true);
}

#[test]
fn regression_ordinary_patterns_compile() {
    for pattern in [r"^\w{1,64}$", r"^[\w.-]{1,128}$", r"^.{0,4096}$"] {
        check(&Constraint::RegexMatch(pattern.to_owned()), &json!({"name": "abc"}), true);
    }
}
