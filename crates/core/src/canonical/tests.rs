//! What canonical JSON looks like, byte for byte.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::order::compare;
use super::*;

#[track_caller]
fn check(value: &(impl Serialize + ?Sized), expected: &str) {
    assert_eq!(to_string(value).as_deref(), Ok(expected));
    assert_eq!(to_vec(value).as_deref(), Ok(expected.as_bytes()));
    assert_eq!(hash(value), Ok(sha256_hex(expected.as_bytes())));
}

#[track_caller]
fn refuse(value: &(impl Serialize + ?Sized), expected: &CanonicalError) {
    assert_eq!(to_vec(value).as_ref(), Err(expected));
    assert_eq!(to_string(value).as_ref(), Err(expected));
    assert_eq!(hash(value).as_ref(), Err(expected));
}

/// A map that hands over its members in the order given, repeated ones too.
struct Pairs<K, V>(Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Pairs<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[test]
fn members_are_ordered_by_utf16_code_units() {
    // Each list is in order. Surrogates (astral characters) come before U+E000 to U+FFFF.
    let ordered: [&[&str]; 5] = [
        &["", "\u{0}", "\r", " ", "1", "10", "2", "A", "Z", "_", "a", "aa", "ab", "b"],
        &["a", "a\u{0}", "a ", "aa", "a\u{7f}", "a\u{80}", "a\u{ff}", "a\u{100}", "a\u{10000}"],
        &["\u{7f}", "\u{80}", "\u{7ff}", "\u{800}", "\u{d7ff}", "\u{10000}", "\u{10ffff}"],
        &["\u{d7ff}", "\u{10000}", "\u{1f600}", "\u{10ffff}", "\u{e000}", "\u{fb33}", "\u{ffff}"],
        &["x\u{10ffff}", "x\u{10ffff}y", "x\u{e000}", "x\u{e000}\u{10000}", "x\u{e000}\u{e000}"],
    ];
    for list in ordered {
        for (i, left) in list.iter().enumerate() {
            for (j, right) in list.iter().enumerate() {
                assert_eq!(
                    compare(left.as_bytes(), right.as_bytes()),
                    i.cmp(&j),
                    "{left:?} and {right:?}"
                );
                let by_units: Ordering = left.encode_utf16().cmp(right.encode_utf16());
                assert_eq!(
                    compare(left.as_bytes(), right.as_bytes()),
                    by_units,
                    "{left:?} and {right:?}"
                );
            }
        }
        let members = |names: Vec<&str>| {
            Pairs(names.into_iter().map(|name| (name.to_owned(), json!(0))).collect())
        };
        let written: Vec<String> =
            list.iter().map(|name| format!("{}:0", serde_json::to_string(name).unwrap())).collect();
        let expected = format!("{{{}}}", written.join(","));
        check(&members(list.to_vec()), &expected);
        check(&members(list.iter().rev().copied().collect()), &expected);
    }
}

#[test]
fn every_pair_of_boundary_characters_is_ordered_as_utf16() {
    let boundaries = [
        0x0, 0x1f, 0x20, 0x7f, 0x80, 0x7ff, 0x800, 0xfff, 0x1000, 0xcfff, 0xd000, 0xd7ff, 0xe000,
        0xe001, 0xefff, 0xf000, 0xfffd, 0xfffe, 0xffff, 0x10000, 0x3ffff, 0x40000, 0xfffff,
        0x10_0000, 0x10_ffff,
    ];
    let texts: Vec<String> = boundaries
        .iter()
        .filter_map(|code| char::from_u32(*code))
        .flat_map(|c| [format!("{c}"), format!("k{c}"), format!("{c}k"), format!("{c}{c}")])
        .collect();
    assert_eq!(texts.len(), boundaries.len() * 4);
    for left in &texts {
        for right in &texts {
            let expected = left.encode_utf16().cmp(right.encode_utf16());
            assert_eq!(
                compare(left.as_bytes(), right.as_bytes()),
                expected,
                "{left:?} and {right:?}"
            );
        }
    }
}

#[test]
fn only_quotes_backslashes_and_c0_controls_are_escaped() {
    let cases = [
        ("", r#""""#),
        ("\"\\/", r#""\"\\/""#),
        ("\u{8}\t\n\u{c}\r", r#""\b\t\n\f\r""#),
        ("\u{0}\u{1}\u{7}\u{b}\u{e}\u{f}", r#""\u0000\u0001\u0007\u000b\u000e\u000f""#),
        ("\u{10}\u{1a}\u{1b}\u{1f} ", r#""\u0010\u001a\u001b\u001f ""#),
        ("\u{7f}\u{80}\u{85}\u{9f}", "\"\u{7f}\u{80}\u{85}\u{9f}\""),
        ("\u{a0}\u{2028}\u{2029}\u{feff}", "\"\u{a0}\u{2028}\u{2029}\u{feff}\""),
        ("é€😀\u{e000}\u{ffff}", "\"é€😀\u{e000}\u{ffff}\""),
        // No normalization: one character and its two parts stay apart.
        ("\u{e9}e\u{301}", "\"\u{e9}e\u{301}\""),
        ("a\"b\nc\\", r#""a\"b\nc\\""#),
        ("<script>&'", "\"<script>&'\""),
    ];
    for (text, expected) in cases {
        check(text, expected);
        check(&Pairs(vec![(text, 0)]), &format!("{{{expected}:0}}"));
        let back: String = serde_json::from_str(expected).unwrap();
        assert_eq!(back, text);
    }
    check(&'"', r#""\"""#);
    check(&'😀', "\"😀\"");
}

#[test]
fn every_byte_is_written_the_same_wherever_it_stands() {
    let naive = |text: &str| -> String {
        let escaped = text.chars().map(|c| match c {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\u{8}' => "\\b".to_owned(),
            '\t' => "\\t".to_owned(),
            '\n' => "\\n".to_owned(),
            '\u{c}' => "\\f".to_owned(),
            '\r' => "\\r".to_owned(),
            '\u{0}'..='\u{1f}' => format!("\\u{:04x}", u32::from(c)),
            other => other.to_string(),
        });
        format!("\"{}\"", escaped.collect::<String>())
    };
    let fillers = ["a", " ", "\u{7f}", "é", "\u{ffff}", "😀", "!", "#", "[", "]"];
    let characters = (0..=0x100).filter_map(char::from_u32);
    for c in characters.chain(['\u{2022}', '\u{225c}', '\u{1f600}']) {
        for filler in fillers {
            for before in 0..9 {
                let text = format!("{}{c}{}", filler.repeat(before), filler.repeat(9 - before));
                assert_eq!(to_string(&text).unwrap(), naive(&text), "{text:?}");
                let twice = format!("{}{c}{text}", filler.repeat(before));
                assert_eq!(to_string(&twice).unwrap(), naive(&twice), "{twice:?}");
            }
        }
    }
}

#[test]
fn integers_of_64_bits_keep_every_digit() {
    check(&0, "0");
    check(&-1_i8, "-1");
    check(&i16::MIN, "-32768");
    check(&u16::MAX, "65535");
    check(&i32::MIN, "-2147483648");
    check(&u32::MAX, "4294967295");
    check(&9_007_199_254_740_991_u64, "9007199254740991");
    check(&9_007_199_254_740_993_u64, "9007199254740993");
    check(&i64::MIN, "-9223372036854775808");
    check(&i64::MAX, "9223372036854775807");
    check(&u64::MAX, "18446744073709551615");
    check(&i128::from(u64::MAX), "18446744073709551615");
    check(&i128::from(i64::MIN), "-9223372036854775808");
    check(&u128::from(u64::MAX), "18446744073709551615");
    for text in ["9007199254740993", "-9223372036854775808", "18446744073709551615"] {
        check(&serde_json::from_str::<Value>(text).unwrap(), text);
    }
}

#[test]
fn integers_beyond_64_bits_are_refused_where_they_are_typed() {
    let too_wide = |text: &str| CanonicalError::TooWide(text.to_owned());
    refuse(&(u128::from(u64::MAX) + 1), &too_wide("18446744073709551616"));
    refuse(&(i128::from(i64::MIN) - 1), &too_wide("-9223372036854775809"));
    refuse(&(i128::from(u64::MAX) + 1), &too_wide("18446744073709551616"));
}

#[test]
fn integers_beyond_64_bits_in_text_are_doubles() {
    for (text, expected) in [
        ("18446744073709551616", "18446744073709552000"),
        ("-9223372036854775809", "-9223372036854776000"),
        ("100000000000000000000000", "1e+23"),
        ("123456789012345680000", "123456789012345680000"),
    ] {
        check(&serde_json::from_str::<Value>(text).unwrap(), expected);
    }
}

#[test]
fn doubles_take_the_ecmascript_form() {
    let cases = [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (100.0, "100"),
        (1e20, "100000000000000000000"),
        (999_999_999_999_999_900_000.0, "999999999999999900000"),
        (1e21, "1e+21"),
        (-1e21, "-1e+21"),
        (1.5e300, "1.5e+300"),
        (0.1, "0.1"),
        (0.000_001, "0.000001"),
        (0.000_001_234, "0.000001234"),
        (0.000_000_999_999_9, "9.999999e-7"),
        (1e-7, "1e-7"),
        (-1e-7, "-1e-7"),
        (5e-324, "5e-324"),
        (-5e-324, "-5e-324"),
        (2.225_073_858_507_201_4e-308, "2.2250738585072014e-308"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::MIN, "-1.7976931348623157e+308"),
        (f64::EPSILON, "2.220446049250313e-16"),
        (333_333_333.333_333_3, "333333333.3333333"),
        (9_007_199_254_740_992.0, "9007199254740992"),
        (1e23, "1e+23"),
        (0.3, "0.3"),
        (0.1 + 0.2, "0.30000000000000004"),
        (4.35, "4.35"),
        (1.0 / 3.0, "0.3333333333333333"),
    ];
    for (value, expected) in cases {
        check(&value, expected);
    }
    check(&0.5_f32, "0.5");
    check(&0.1_f32, "0.10000000149011612");
}

/// The ECMAScript form, made from the digits and the exponent that the standard library finds.
fn ecmascript(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{:e}", value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let digits = mantissa.replace('.', "");
    let point = exponent.parse::<i32>().unwrap() + 1;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap());
    let len = i32::try_from(digits.len()).unwrap();
    let sign = if value < 0.0 { "-" } else { "" };
    let body = if (len..=21).contains(&point) {
        format!("{digits}{}", zeros(point - len))
    } else if (1..=21).contains(&point) {
        let (whole, rest) = digits.split_at(usize::try_from(point).unwrap());
        format!("{whole}.{rest}")
    } else if (-5..=0).contains(&point) {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{first}{dot}{rest}e{:+}", point - 1)
    };
    format!("{sign}{body}")
}

/// Equal, but that of two digits that are equally close ECMAScript takes the even one.
fn agrees(written: &str, expected: &str) -> bool {
    let differing: Vec<(char, char)> =
        written.chars().zip(expected.chars()).filter(|(w, e)| w != e).collect();
    let even = |digit: char| digit.to_digit(10).is_some_and(|digit| digit % 2 == 0);
    written.len() == expected.len()
        && match differing.as_slice() {
            [] => true,
            [(ours, theirs)] => even(*ours) && !even(*theirs),
            _ => false,
        }
}

#[test]
fn random_doubles_take_the_ecmascript_form_and_read_back_the_same() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut seen = 0;
    while seen < 20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        let mixed = state ^ (state >> 29);
        // All exponents, and the decimal range more often than its share.
        let value = match seen % 3 {
            0 => f64::from_bits(mixed),
            1 => f64::from_bits(mixed) % 1e22,
            _ => f64::from(u32::try_from(mixed >> 32).unwrap()) / 1e7,
        };
        if !value.is_finite() {
            continue;
        }
        seen += 1;
        let written = to_string(&value).unwrap();
        assert!(agrees(&written, &ecmascript(value)), "{written}, bits {:#x}", value.to_bits());
        let back: f64 = written.parse().unwrap();
        assert!(back.to_bits() == value.to_bits() || (back == 0.0 && value == 0.0), "{written}");
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    refuse(&f64::NAN, &CanonicalError::NotFinite("NaN"));
    refuse(&-f64::NAN, &CanonicalError::NotFinite("NaN"));
    refuse(&f32::NAN, &CanonicalError::NotFinite("NaN"));
    refuse(&f64::INFINITY, &CanonicalError::NotFinite("Infinity"));
    refuse(&f64::NEG_INFINITY, &CanonicalError::NotFinite("Infinity"));
    refuse(&f32::INFINITY, &CanonicalError::NotFinite("Infinity"));
    refuse(&[0.0, f64::NAN], &CanonicalError::NotFinite("NaN"));
    refuse(&Pairs(vec![("a", f64::NAN)]), &CanonicalError::NotFinite("NaN"));
}

#[test]
fn a_member_that_comes_twice_is_refused_wherever_it_stands() {
    let twice = |name: &str| CanonicalError::DuplicateKey(name.to_owned());
    refuse(&Pairs(vec![("a", 1), ("a", 1)]), &twice("a"));
    refuse(&Pairs(vec![("a", 1), ("b", 2), ("a", 1)]), &twice("a"));
    refuse(&Pairs(vec![("b", 1), ("a", 2), ("b", 3)]), &twice("b"));
    refuse(&Pairs(vec![("", 1), ("x", 2), ("", 3)]), &twice(""));
    refuse(&Pairs(vec![("\u{e000}", 1), ("😀", 2), ("\u{e000}", 3)]), &twice("\u{e000}"));
    refuse(&Pairs(vec![("outer", Pairs(vec![("in", 1), ("in", 2)]))]), &twice("in"));
    refuse(&vec![Pairs(vec![("k", 1)]), Pairs(vec![("k", 1), ("k", 1)])], &twice("k"));
    // The same name in two objects is no repetition.
    let inner = || Pairs(vec![("a", 1)]);
    check(&Pairs(vec![("a", inner()), ("b", inner())]), r#"{"a":{"a":1},"b":{"a":1}}"#);
}

/// A member name that is not a string.
#[derive(Serialize)]
enum Key {
    Unit,
    Newtype(&'static str),
    Tuple(u8, u8),
    Struct { a: u8 },
}

#[derive(Serialize)]
struct Empty;

#[derive(Serialize)]
struct Wrapped<T>(T);

#[test]
fn member_names_that_are_no_strings_are_refused() {
    #[track_caller]
    fn key(name: impl Serialize, expected: &'static str) {
        refuse(&Pairs(vec![(name, 0)]), &CanonicalError::KeyNotString(expected));
    }
    key(true, "a boolean");
    for_each_integer(|refused| assert_eq!(refused, CanonicalError::KeyNotString("a number")));
    key(1.5_f32, "a number");
    key(1.5_f64, "a number");
    key((), "nothing");
    key(None::<&str>, "nothing");
    key(Empty, "nothing");
    key(vec!["a"], "an array");
    key(("a", "b"), "an array");
    key(Key::Tuple(1, 2), "an array");
    key(BTreeMap::from([("a", 1)]), "an object");
    key(Key::Struct { a: 1 }, "an object");
    key(Key::Newtype("a"), "an enum variant with content");
}

fn for_each_integer(look: impl Fn(CanonicalError)) {
    look(to_vec(&Pairs(vec![(1_i8, 0)])).unwrap_err());
    look(to_vec(&Pairs(vec![(1_i16, 0)])).unwrap_err());
    look(to_vec(&Pairs(vec![(1_i32, 0)])).unwrap_err());
    look(to_vec(&Pairs(vec![(1_i64, 0)])).unwrap_err());
    look(to_vec(&Pairs(vec![(1_u8, 0)])).unwrap_err());
    look(to_vec(&Pairs(vec![(1_u16, 0)])).unwrap_err());
    look(to_vec(&Pairs(vec![(1_u32, 0)])).unwrap_err());
    look(to_vec(&Pairs(vec![(1_u64, 0)])).unwrap_err());
}

#[test]
fn member_names_may_be_anything_that_reads_as_a_string() {
    check(&Pairs(vec![('x', 0)]), r#"{"x":0}"#);
    check(&Pairs(vec![(Some("x"), 0)]), r#"{"x":0}"#);
    check(&Pairs(vec![(Wrapped("x"), 0)]), r#"{"x":0}"#);
    check(&Pairs(vec![(Key::Unit, 0)]), r#"{"Unit":0}"#);
    check(&Pairs(vec![(crate::hash::Hash::new([0; 32]), 0)]), &{
        format!(r#"{{"0x{}":0}}"#, "00".repeat(32))
    });
}

#[test]
fn nesting_is_written_up_to_its_limit_and_refused_beyond() {
    let nested = |depth: usize, object: bool| {
        (0..depth)
            .fold(json!(1), |inner, _| if object { json!({"a": inner}) } else { json!([inner]) })
    };
    for object in [false, true] {
        let deepest = to_string(&nested(MAX_DEPTH, object)).unwrap();
        assert_eq!(deepest.matches(['[', '{']).count(), 128);
        refuse(&nested(MAX_DEPTH + 1, object), &CanonicalError::TooDeep);
        refuse(&nested(MAX_DEPTH + 1000, object), &CanonicalError::TooDeep);
    }
    // Siblings do not add up, whichever kind they are.
    let wide = json!([nested(127, true), nested(127, false), nested(127, true)]);
    assert!(to_vec(&wide).is_ok());
    assert_eq!(MAX_DEPTH, 128);
}

#[test]
fn an_enum_variant_counts_as_a_level() {
    #[derive(Serialize)]
    enum Node {
        Inner(Box<Self>),
        Leaf,
    }
    let nested = |depth| (0..depth).fold(Node::Leaf, |inner, _| Node::Inner(Box::new(inner)));
    assert!(to_vec(&nested(MAX_DEPTH)).is_ok());
    refuse(&nested(MAX_DEPTH + 1), &CanonicalError::TooDeep);
}

#[test]
fn members_are_left_out_at_the_root_only() {
    #[track_caller]
    fn without(value: &impl Serialize, omit: &[&str], expected: &str) {
        let bytes = to_vec_without(value, omit).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
    let inner = json!({"id": 1, "signature": "s"});
    let value = json!({"id": 7, "list": [inner], "object": inner, "signature": "x"});
    let kept = r#""list":[{"id":1,"signature":"s"}],"object":{"id":1,"signature":"s"}"#;
    without(&value, &["signature"], &format!(r#"{{"id":7,{kept}}}"#));
    without(&value, &["id", "signature"], &format!("{{{kept}}}"));
    without(&value, &["id", "list", "object", "signature"], "{}");
    without(&value, &["absent"], &to_string(&value).unwrap());
    without(&value, &[], &to_string(&value).unwrap());
    without(&json!([inner]), &["id", "signature"], r#"[{"id":1,"signature":"s"}]"#);
    without(&json!("id"), &["id"], r#""id""#);
    // Out of order, with what is left out first, last and in between.
    let mixed = Pairs(vec![("z", 1), ("c", 2), ("y", 3), ("a", 4), ("x", 5)]);
    without(&mixed, &["z", "x", "y"], r#"{"a":4,"c":2}"#);
    without(&mixed, &["a", "c"], r#"{"x":5,"y":3,"z":1}"#);
    // The name of a variant is no member of an object.
    without(&Key::Newtype("id"), &["Newtype"], r#"{"Newtype":"id"}"#);
    without(&Key::Struct { a: 1 }, &["a"], r#"{"Struct":{"a":1}}"#);
}

#[test]
fn what_is_left_out_is_not_even_looked_at() {
    struct Broken;
    impl Serialize for Broken {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("broken"))
        }
    }
    let value = Pairs(vec![("bad", Broken)]);
    refuse(&value, &CanonicalError::Custom("broken".to_owned()));
    assert_eq!(to_vec_without(&value, &["bad"]), Ok(b"{}".to_vec()));
}

#[test]
fn every_kind_of_type_has_its_json_form() {
    #[derive(Serialize)]
    struct Named {
        zulu: Option<u8>,
        alpha: (),
        #[serde(skip_serializing_if = "Option::is_none")]
        gone: Option<u8>,
    }
    #[derive(Serialize)]
    struct Tuple(u8, &'static str);

    check(&Named { zulu: None, alpha: (), gone: None }, r#"{"alpha":null,"zulu":null}"#);
    check(&Named { zulu: Some(1), alpha: (), gone: Some(2) }, {
        r#"{"alpha":null,"gone":2,"zulu":1}"#
    });
    check(&Tuple(1, "x"), r#"[1,"x"]"#);
    check(&Wrapped(7), "7");
    check(&Empty, "null");
    check(&(), "null");
    check(&(true, false), "[true,false]");
    check(&[0_u8; 0], "[]");
    check(&BTreeMap::<String, u8>::new(), "{}");
    check(&Key::Unit, r#""Unit""#);
    check(&Key::Newtype("x"), r#"{"Newtype":"x"}"#);
    check(&Key::Tuple(1, 2), r#"{"Tuple":[1,2]}"#);
    check(&Key::Struct { a: 1 }, r#"{"Struct":{"a":1}}"#);
    check(&vec![Key::Unit, Key::Tuple(3, 4), Key::Newtype("n")], {
        r#"["Unit",{"Tuple":[3,4]},{"Newtype":"n"}]"#
    });
}

#[test]
fn bytes_are_an_array_of_numbers() {
    struct Bytes;
    impl Serialize for Bytes {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&[0, 127, 255])
        }
    }
    check(&Bytes, "[0,127,255]");
    check(&Pairs(vec![("b", Bytes), ("a", Bytes)]), r#"{"a":[0,127,255],"b":[0,127,255]}"#);
}

#[test]
fn members_of_variants_with_names_are_sorted_too() {
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Shape {
        Wide { zulu: u8, mike: &'static str, alpha: [u8; 2] },
    }
    let shape = Shape::Wide { zulu: 1, mike: "m", alpha: [2, 3] };
    check(&shape, r#"{"wide":{"alpha":[2,3],"mike":"m","zulu":1}}"#);
}

#[test]
fn objects_are_sorted_at_every_level() {
    let inner = || Pairs(vec![("y", json!(2)), ("x", json!([{"b": 1, "a": 2}]))]);
    let middle = || Pairs(vec![("n", inner()), ("m", inner())]);
    let outer = Pairs(vec![("2", middle()), ("1", middle()), ("10", middle())]);
    let inner = r#"{"x":[{"a":2,"b":1}],"y":2}"#;
    let middle = format!(r#"{{"m":{inner},"n":{inner}}}"#);
    check(&outer, &format!(r#"{{"1":{middle},"10":{middle},"2":{middle}}}"#));
}

#[test]
fn arrays_keep_their_order() {
    check(&json!([3, 1, 2, "b", "a", null, [2, 1]]), r#"[3,1,2,"b","a",null,[2,1]]"#);
}

#[test]
fn the_order_in_which_members_come_does_not_matter() {
    let members = ["d", "a", "\u{e000}", "c", "😀", ""];
    let expected = "{\"\":5,\"a\":1,\"c\":3,\"d\":0,\"😀\":4,\"\u{e000}\":2}";
    let numbered: Vec<(&str, usize)> = members.iter().copied().zip(0..).collect();
    // Every rotation, forwards and backwards.
    for shift in 0..numbered.len() {
        let mut forwards = numbered.clone();
        forwards.rotate_left(shift);
        let mut backwards = forwards.clone();
        backwards.reverse();
        check(&Pairs(forwards), expected);
        check(&Pairs(backwards), expected);
    }
}

#[test]
fn a_tree_and_a_type_with_the_same_content_have_the_same_bytes() {
    #[derive(Serialize)]
    struct Typed {
        zulu: Vec<Option<f64>>,
        echo: BTreeMap<&'static str, i64>,
        alpha: &'static str,
    }
    let typed = Typed {
        zulu: vec![Some(1.0), None, Some(0.1)],
        echo: BTreeMap::from([("b", -1), ("a", i64::MIN)]),
        alpha: "\u{7f}\u{1}",
    };
    let tree = serde_json::to_value(&typed).unwrap();
    let expected = "{\"alpha\":\"\u{7f}\\u0001\",\
                    \"echo\":{\"a\":-9223372036854775808,\"b\":-1},\"zulu\":[1,null,0.1]}";
    check(&typed, expected);
    check(&tree, expected);
}

#[test]
fn an_object_of_many_members_is_sorted() {
    let many: Vec<(String, usize)> = (0..1000).rev().map(|n| (format!("{n:04}"), n)).collect();
    let expected: Vec<String> = (0..1000).map(|n| format!("\"{n:04}\":{n}")).collect();
    check(&Pairs(many), &format!("{{{}}}", expected.join(",")));
}

#[test]
fn canonical_text_is_its_own_canonical_form() {
    let text = "{\"\":[{},[],null],\"a\":{\"b\":1e+21,\"c\":-0.5},\"😀\":\"\\u001f\u{80}\"}";
    check(&serde_json::from_str::<Value>(text).unwrap(), text);
}

#[test]
fn errors_say_what_was_expected_and_what_was_found() {
    for (error, expected) in [
        (CanonicalError::NotFinite("NaN"), "expected a finite number, found `NaN`"),
        (
            CanonicalError::TooWide("18446744073709551616".to_owned()),
            "expected an integer of at most 64 bits, found `18446744073709551616`",
        ),
        (
            CanonicalError::KeyNotString("a number"),
            "expected a string as member name, found a number",
        ),
        (
            CanonicalError::DuplicateKey("a".to_owned()),
            "expected each member once, found `a` twice",
        ),
        (CanonicalError::TooDeep, "expected at most 128 levels of nesting"),
        (CanonicalError::Custom("anything".to_owned()), "anything"),
    ] {
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn what_was_written_is_copied_here_and_in_serde_json() {
    let value = json!({"b": [1.5, "\u{7f}\n"], "a": {"z": null, "y": true}});
    let written = Written::of(&value).unwrap();
    let around = |inner: &dyn Fn() -> Value| json!({"x": inner(), "w": [inner()]});
    #[derive(serde::Serialize)]
    struct Around<'a> {
        x: &'a Written,
        w: [&'a Written; 1],
        s: &'a str,
    }
    let typed = Around { x: &written, w: [&written], s: "plain" };
    let mut expected = around(&|| value.clone());
    expected["s"] = json!("plain");
    assert_eq!(to_vec(&typed).unwrap(), to_vec(&expected).unwrap());
    let text = serde_json::to_string(&typed).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    assert_eq!(written.to_value(), value);
    let read: Written = serde_json::from_str("{ \"b\": 2, \"a\": 1.0 }").unwrap();
    assert_eq!(read.as_str(), r#"{"a":1,"b":2}"#);
}

#[test]
fn raw_text_of_unknown_form_is_not_written() {
    let raw = serde_json::value::RawValue::from_string("{ }".to_owned()).unwrap();
    assert!(to_vec(&raw).is_err());
    assert!(to_vec(&json!({"a": 1})).is_ok());
}

#[test]
fn memory_that_is_used_again_keeps_nothing() {
    let mut scratch = Scratch::default();
    let values = [json!({"b": 1, "a": [2]}), json!("x"), json!(null), json!({"z": {"y": {}}})];
    for value in values.iter().chain(&values) {
        assert_eq!(scratch.write(value).unwrap(), to_vec(value).unwrap());
        assert_eq!(scratch.hash(value), hash(value));
        // What fails half-way leaves nothing behind.
        assert!(scratch.write(&(1, f64::NAN)).is_err());
    }
}

#[test]
fn the_size_tells_bytes_and_levels() {
    for (value, depth) in [
        (json!(1), 0),
        (json!([]), 1),
        (json!({"a": [1, {"b": []}], "c": [2]}), 4),
        (json!([[[]], []]), 3),
    ] {
        let bytes = to_vec(&value).unwrap().len();
        assert_eq!(size(&value), Ok(Size { bytes, depth }), "{value}");
        let mut scratch = Scratch::default();
        scratch.write(&value).unwrap();
        assert_eq!(scratch.size(), Size { bytes, depth });
    }
}
