//! What untrusted text is refused for, and what its errors say.

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::capability::CapabilityToken;

#[track_caller]
fn accept(text: &str) -> Value {
    assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
    from_slice(text.as_bytes()).unwrap()
}

/// Every way in refuses the text, for the same reason.
#[track_caller]
fn refuse(text: &str) -> StrictError {
    let error = check(text.as_bytes()).unwrap_err();
    assert_eq!(from_slice::<Value>(text.as_bytes()), Err(error.clone()), "{text}");
    assert_eq!(object_from_slice::<Value>(text.as_bytes()), Err(error.clone()), "{text}");
    assert_eq!(canonicalize(text.as_bytes()), Err(error.clone()), "{text}");
    error
}

/// The text is not JSON, as the error says with its place.
#[track_caller]
fn refuse_syntax(text: &str, line: usize, column: usize) {
    let StrictError::Syntax { message } = refuse(text) else { panic!("{text} is JSON") };
    let place = format!(" at line {line} column {column}");
    assert!(message.ends_with(&place), "{text}: {message}");
}

#[test]
fn json_without_repetition_is_read() {
    let text = r#" {"a":[1,-2.5e3,"x\u0000",true,false,null,{},[]],"b":{"a":{"a":1}},"":0} "#;
    let expected = json!({
        "a": [1, -2500.0, "x\u{0}", true, false, null, {}, []], "b": {"a": {"a": 1}}, "": 0,
    });
    assert_eq!(accept(text), expected);
    assert_eq!(accept("null"), Value::Null);
    assert_eq!(accept("\t\r\n 0 \n"), json!(0));
}

#[test]
fn a_member_that_comes_twice_is_refused_at_any_depth_and_in_any_spelling() {
    let cases = [
        (r#"{"a":1,"a":2}"#, "a"),
        (r#"{"a":1,"a":1}"#, "a"),
        (r#"{"a":1,"b":2,"c":3,"a":4}"#, "a"),
        (r#"{"":1,"":2}"#, ""),
        (r#"[{"x":{"a":1,"a":2}}]"#, "a"),
        (r#"[[[{"k":[{"v":0,"v":0}]}]]]"#, "v"),
        (r#"{"a":1,"\u0061":2}"#, "a"),
        (r#"{"\u0061":1,"a":2}"#, "a"),
        (r#"{"\u0061":1,"\u0061":2}"#, "a"),
        (r#"{"\/":1,"/":2}"#, "/"),
        (r#"{"\n":1,"\u000a":2}"#, "\n"),
        (r#"{"\ud83d\ude00":1,"😀":2}"#, "😀"),
        (r#"{"é":1,"\u00e9":2}"#, "é"),
        (r#"{"A":1,"a":2,"A":3}"#, "A"),
    ];
    for (text, name) in cases {
        let error = refuse(text);
        let StrictError::DuplicateMember { name: found, line: 1, column } = &error else {
            panic!("{text}: {error:?}");
        };
        assert_eq!(found, name, "{text}");
        assert!((2..=text.len()).contains(column), "{text}: column {column}");
    }
}

#[test]
fn names_that_only_look_alike_are_two_members() {
    for text in [
        r#"{"a":1,"A":2}"#,
        r#"{"a":1,"a ":2}"#,
        "{\"\u{e9}\":1,\"e\u{301}\":2}",
        r#"{"a":{"a":{"a":1}}}"#,
        r#"[{"a":1},{"a":2}]"#,
        r#"{"\\u0061":1,"a":2}"#,
    ] {
        accept(text);
    }
}

#[test]
fn repetition_is_found_in_objects_of_any_size() {
    for size in [1, 2, 15, 16, 17, 18, 33, 500] {
        let mut members: Vec<String> = (0..size).map(|n| format!("\"m{n}\":{n}")).collect();
        accept(&format!("{{{}}}", members.join(",")));
        for repeated in [0, size / 2, size - 1] {
            members.push(format!("\"m{repeated}\":0"));
            let text = format!("{{{}}}", members.join(","));
            members.pop();
            let Err(StrictError::DuplicateMember { name, .. }) = check(text.as_bytes()) else {
                panic!("{size} members with `m{repeated}` twice were accepted");
            };
            assert_eq!(name, format!("m{repeated}"));
        }
    }
}

#[test]
fn values_and_names_are_read_up_to_their_limit_and_refused_beyond() {
    let array = |values: usize| format!("[{}0]", "0,".repeat(values - 2));
    assert_eq!(check(array(MAX_NODES).as_bytes()), Ok(()));
    let names: Vec<String> = (0..MAX_NODES / 2).map(|name| format!("\"{name}\":0")).collect();
    for text in [
        array(MAX_NODES + 1),
        array(8 * MAX_NODES),
        format!("[{}0]", "[0],".repeat(1 << 20)),
        format!("[{}0]", "{},".repeat(1 << 20)),
        format!("{{{}}}", names.join(",")),
    ] {
        let error = check(text.as_bytes()).unwrap_err();
        assert!(matches!(error, StrictError::TooMany { line: 1, column: 1.. }), "{error:?}");
        assert_eq!(from_slice::<Value>(text.as_bytes()), Err(error));
    }
    let message = check(array(MAX_NODES + 1).as_bytes()).unwrap_err().to_string();
    let start = "expected at most 524288 values and names of members, found more (line 1, column ";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn the_size_of_a_tree_is_told_by_the_marks_outside_of_strings() {
    let plain = tree_size(b"0") - 1;
    for (text, more) in [
        (r#""a""#, 0),
        (r#""[{,:\"[{,:\\""#, 0),
        ("[0]", ARRAY_SIZE + VALUE_SIZE),
        ("[0,0]", ARRAY_SIZE + 2 * VALUE_SIZE),
        (r#"{"a":0}"#, OBJECT_SIZE + VALUE_SIZE + MEMBER_SIZE),
        (r#"{"a":"b\\","c":[]}"#, OBJECT_SIZE + ARRAY_SIZE + 3 * VALUE_SIZE + 2 * MEMBER_SIZE),
    ] {
        assert_eq!(tree_size(text.as_bytes()), plain + text.len() + more, "{text}");
    }
}

#[test]
fn nesting_is_read_up_to_its_limit_and_refused_beyond() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
        let level = open.matches(['[', '{']).count();
        let nested = |depth: usize| {
            format!("{}0{}", open.repeat(depth / level), close.repeat(depth / level))
        };
        accept(&nested(MAX_DEPTH));
        for depth in [MAX_DEPTH + level, MAX_DEPTH + 40, 100_000] {
            let error = check(nested(depth).as_bytes()).unwrap_err();
            assert!(matches!(error, StrictError::TooDeep { line: 1, column: 1.. }), "{error:?}");
        }
    }
    assert_eq!(MAX_DEPTH, 96);
    let nested = format!("{}{}", "[".repeat(97), "]".repeat(97));
    let message = check(nested.as_bytes()).unwrap_err().to_string();
    let start = "expected at most 96 levels of nesting, found more (line 1, column 9";
    assert!(message.starts_with(start), "{message}");
    // Siblings do not add up.
    let side = format!("{}{}", "[".repeat(95), "]".repeat(95));
    accept(&format!("[{side},{side}]"));
}

#[test]
fn what_is_read_can_be_written_canonically() {
    let text = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert_eq!(canonicalize(text.as_bytes()).unwrap(), text.as_bytes());
}

#[test]
fn text_that_is_not_json_is_refused_with_its_place() {
    let cases = [
        ("", 1, 0),
        ("  \n ", 2, 1),
        ("{", 1, 1),
        ("[1,", 1, 3),
        ("{\"a\":1,}", 1, 8),
        ("[1,]", 1, 4),
        ("{'a':1}", 1, 2),
        ("{1:1}", 1, 2),
        ("nul", 1, 3),
        ("NaN", 1, 1),
        ("Infinity", 1, 1),
        ("01", 1, 2),
        ("+1", 1, 1),
        ("\"\u{1}\"", 1, 2),
        (r#""\x""#, 1, 3),
        ("// no\n1", 1, 1),
        ("\u{feff}1", 1, 1),
    ];
    for (text, line, column) in cases {
        refuse_syntax(text, line, column);
    }
    for bytes in [&b"\xff"[..], b"\"\xff\"", b"{\"\xed\xa0\x80\":1}", b"\"\xc0\x80\""] {
        assert!(matches!(check(bytes), Err(StrictError::Syntax { .. })), "{bytes:?}");
    }
}

#[test]
fn json_that_is_not_kept_is_called_what_it_is() {
    for (text, what, place) in [
        ("1e999", "a larger one", "(line 1, column 5)"),
        (r#""\ud800""#, "half of a surrogate pair", "(line 1, column 8)"),
        (r#""\udc00""#, "half of a surrogate pair", "(line 1, column 7)"),
    ] {
        match check(text.as_bytes()) {
            Err(StrictError::Unkept { expected }) => {
                assert!(expected.contains(what) && expected.ends_with(place), "{expected}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn anything_after_the_value_is_refused() {
    for (text, column) in
        [("{}x", 3), ("{}{}", 3), ("1 2", 3), ("[] ,", 4), ("null\u{0}", 5), ("{} // no", 4)]
    {
        refuse_syntax(text, 1, column);
    }
}

#[test]
fn an_artifact_is_an_object() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Pair {
        left: u8,
        right: u8,
    }
    let pair = Ok(Pair { left: 1, right: 2 });
    for text in [r#"{"left":1,"right":2}"#, " \n\t{\"right\":2,\"left\":1}"] {
        assert_eq!(object_from_slice::<Pair>(text.as_bytes()), pair, "{text}");
    }
    for text in ["[1,2]", " [1,2]", "[]", "\"{\"", "1", "-1", "null", "true", "[{}]"] {
        let error = object_from_slice::<Pair>(text.as_bytes()).unwrap_err();
        assert!(matches!(error, StrictError::Shape { .. }), "{text}: {error:?}");
        let message = error.to_string();
        assert!(message.starts_with("expected a JSON object, found "), "{text}: {message}");
        assert!(object_from_slice::<Value>(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn errors_of_shape_name_the_place_and_the_kind_and_never_the_value() {
    let token = |members: &str| format!("{{\"id\":\"cap-1\",{members}}}");
    let cases = [
        (r#""issued_at":"hunter2 hunter2""#, "expected u64, found ", "string"),
        (r#""issued_at":-77007700"#, "expected u64, found ", "integer"),
        (r#""issued_at":77007700.5"#, "expected u64, found ", "floating point"),
        (r#""issued_at":[77007700]"#, "expected u64, found ", "sequence"),
        (r#""issued_at":{"hunter2":1}"#, "expected u64, found ", "map"),
        (r#""issued_at":true"#, "expected u64, found ", "boolean"),
        (r#""issued_at":null"#, "expected u64, found ", "null"),
        (r#""scope":"hunter2""#, "expected struct ChioScope, found ", "string"),
        (r#""scope":{"grants":"hunter2"}"#, "expected a sequence, found ", "string"),
        (r#""delegation_chain":"hunter2""#, "expected a sequence, found ", "string"),
        (r#""budget_share_bps":77007700"#, "expected u16, found ", "integer"),
        (r#""issued_at":"hunter2, expected u64""#, "expected u64, found ", "string"),
        (r#""issued_at":"hunter2\", expected \"u64""#, "expected u64, found ", "string"),
        (r#""issued_at":"a: hunter2""#, "expected u64, found ", "string"),
        (r#""issued_at":"`hunter2`""#, "expected u64, found ", "string"),
    ];
    for (members, start, found) in cases {
        let text = token(members);
        let error = from_slice::<CapabilityToken>(text.as_bytes()).unwrap_err();
        assert!(matches!(error, StrictError::Shape { .. }), "{text}: {error:?}");
        let message = error.to_string();
        let expected = format!("{start}{found} at line 1 column ");
        assert!(message.starts_with(&expected), "{text}: {message}");
        for secret in ["hunter2", "77007700"] {
            assert!(!message.contains(secret), "{text}: {message}");
        }
    }
}

#[test]
fn keys_signatures_and_hashes_are_never_repeated() {
    #[derive(Debug, Deserialize)]
    struct Holder {
        #[serde(rename = "hash")]
        _hash: crate::hash::Hash,
    }
    for (text, expected) in [
        (r#"{"issuer":"hunter2"}"#, "expected a public key (64 hex digits"),
        (r#"{"subject":"p256:hunter2"}"#, "expected a public key (64 hex digits"),
        (r#"{"signature":"hunter2"}"#, "expected a signature (128 hex digits"),
    ] {
        let message = from_slice::<CapabilityToken>(text.as_bytes()).unwrap_err().to_string();
        assert!(
            message.starts_with(expected) && message.contains(" at line 1 column "),
            "{message}"
        );
        assert!(!message.contains("hunter2"), "{message}");
    }
    let message = from_slice::<Holder>(br#"{"hash":"hunter2"}"#).unwrap_err().to_string();
    assert!(message.starts_with("expected 64 hex digits"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn names_and_places_do_appear_in_errors() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Closed {
        #[serde(rename = "only")]
        _only: u8,
    }
    let message = |text: &str| from_slice::<Closed>(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(message("{}"), "missing field `only` at line 1 column 2");
    assert_eq!(message("{\n\n}"), "missing field `only` at line 3 column 1");
    let extra = message("{\"only\":1,\n\"extra\":\"hunter2\"}");
    assert!(
        extra.starts_with("unknown field `extra`, expected `only` at line 2 column "),
        "{extra}"
    );
    assert!(from_slice::<Closed>(b"{\"only\":1}").is_ok());
}

#[test]
fn a_repeated_member_is_found_before_the_shape_is() {
    let error = from_slice::<CapabilityToken>(br#"{"zzz":1,"zzz":2}"#).unwrap_err();
    assert!(matches!(error, StrictError::DuplicateMember { .. }), "{error:?}");
}

#[test]
fn places_are_counted_in_lines_and_columns() {
    let text = "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": 1,\n    \"c\": 2\n  }\n}";
    let message = refuse(text).to_string();
    assert_eq!(message, "expected each member once, found `c` twice (line 5, column 7)");
    refuse_syntax("[\n1,\n\n}", 4, 1);
}

#[test]
fn numbers_that_canonical_form_keeps_are_accepted() {
    for (text, expected) in [
        ("0", "0"),
        ("-1", "-1"),
        ("9007199254740991", "9007199254740991"),
        ("-9007199254740991", "-9007199254740991"),
        ("0.5", "0.5"),
        ("1.50", "1.5"),
        ("0.000001", "0.000001"),
        ("1e-7", "1e-7"),
        ("1E-7", "1e-7"),
        ("0.0000001", "1e-7"),
        ("15e-1", "1.5"),
        ("-0.25", "-0.25"),
        ("5e-324", "5e-324"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("[1,2.5,{\"a\":-3}]", "[1,2.5,{\"a\":-3}]"),
        ("[true,false,null,1]", "[true,false,null,1]"),
    ] {
        let written = canonicalize(text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(written.as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn numbers_that_canonical_form_would_change_are_refused() {
    #[track_caller]
    fn check(token: &str, expected: &str) {
        for text in [
            token.to_owned(),
            format!("[{token}]"),
            format!("[true,{token},null]"),
            format!("{{\"1.0\":[\"2.0\",{{\"a\":{token} }}]}}"),
        ] {
            // Other readers take it; only this door does not.
            accept(&text);
            let error = canonicalize(text.as_bytes()).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("expected {expected}, found `{token}`"),
                "{text}"
            );
        }
    }
    const WIDE: &str = "an integer of at most 53 bits";
    for token in [
        "9007199254740992",
        "-9007199254740992",
        "9007199254740993",
        "18446744073709551615",
        "18446744073709551616",
        "100000000000000000000000000000",
    ] {
        check(token, WIDE);
    }
    const WHOLE: &str = "a whole number written without fraction or exponent";
    for token in ["1.0", "-1.0", "0.0", "-0.0", "1e2", "1E2", "1e+2", "10e-1", "1.5e1", "1e21"] {
        check(token, WHOLE);
    }
    check("1e-400", WHOLE);
    const LONG: &str = "a fraction with no more digits than a double keeps";
    for token in [
        "0.123456789012345678901",
        "0.12345678901234567",
        "333333333.33333329",
        "1.00000000000000001e-1",
        "0.1000000000000000055511151231257827",
        "4e-324",
    ] {
        check(token, LONG);
    }
}

#[test]
fn digits_inside_strings_are_not_numbers() {
    for text in [
        r#""1.0""#,
        r#"{"1.0":"1e2"}"#,
        r#"["\"1.0",0.5]"#,
        r#"["\\",0.5]"#,
        r#"["\\\"1.0\\",0.5]"#,
        r#"["a\\\\\"1e2",1]"#,
    ] {
        assert!(canonicalize(text.as_bytes()).is_ok(), "{text}");
    }
    for text in [r#"["\\",1.0]"#, r#"["\"",1.0]"#, r#"{"\\":1.0}"#, r#"["1.0",1.0]"#] {
        assert!(matches!(canonicalize(text.as_bytes()), Err(StrictError::Number { .. })), "{text}");
    }
}

#[test]
fn canonicalization_sorts_and_unescapes() {
    let written = canonicalize(b"{ \"b\" : [ \"\\u0041\\/\" ] , \"\\u0061\" : null }").unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), r#"{"a":null,"b":["A/"]}"#);
}

#[test]
fn regression_a_signed_zero_does_not_survive() {
    assert!(canonicalize(b"-0").is_err());
    assert_eq!(canonicalize(b"0").unwrap(), b"0");
}

#[test]
fn long_names_are_cut_in_errors() {
    let name = "n".repeat(1000);
    let messages = [
        from_slice::<crate::capability::Operation>(format!("\"{name}\"").as_bytes())
            .unwrap_err()
            .to_string(),
        check(format!("{{\"{name}\":1,\"{name}\":2}}").as_bytes()).unwrap_err().to_string(),
    ];
    for message in messages {
        assert!(message.contains(&"n".repeat(40)), "{message}");
        assert!(!message.contains(&"n".repeat(41)), "{message}");
    }
}
