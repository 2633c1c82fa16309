//! What a bare word stands for, by the core schema of YAML 1.2.

use crate::NodeKind;

/// What a bare word is, or what is wrong with it.
pub(super) fn kind_of(text: &str) -> Result<NodeKind, &'static str> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(NodeKind::Null),
        "true" | "True" | "TRUE" => return Ok(NodeKind::Flag(true)),
        "false" | "False" | "FALSE" => return Ok(NodeKind::Flag(false)),
        _ => {}
    }
    if let Some(integer) = integer(text) {
        return integer.map(NodeKind::Integer);
    }
    if is_endless(text) {
        return Err("expected a number, found one without an end; put it in quotes if it is text");
    }
    if is_float(text) {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        return number.map(NodeKind::Float).ok_or("this number is too large");
    }
    Ok(NodeKind::Text(text.to_owned()))
}

fn integer(text: &str) -> Option<Result<i64, &'static str>> {
    const TOO_LARGE: &str =
        "this whole number is too large; put it in quotes if it is text, such as an identifier";
    let (digits, radix) = if let Some(digits) = text.strip_prefix("0x") {
        (digits, 16)
    } else if let Some(digits) = text.strip_prefix("0o") {
        (digits, 8)
    } else {
        (text.strip_prefix(['+', '-']).unwrap_or(text), 10)
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let signed = if radix == 10 { text } else { digits };
    Some(i64::from_str_radix(signed, radix).map_err(|_| TOO_LARGE))
}

fn is_endless(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa = digits(whole) && digits(part) && !(whole.is_empty() && part.is_empty());
    let exponent = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    mantissa && exponent
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &NodeKind) {
        assert_eq!(kind_of(text).as_ref(), Ok(expected), "{text:?}");
    }

    #[test]
    fn bare_words_are_what_the_core_schema_says() {
        for text in ["", "~", "null", "Null", "NULL"] {
            check(text, &NodeKind::Null);
        }
        for (text, flag) in [("true", true), ("True", true), ("TRUE", true), ("false", false)] {
            check(text, &NodeKind::Flag(flag));
        }
        for (text, number) in [
            ("0", 0),
            ("-0", 0),
            ("+12", 12),
            ("-19", -19),
            ("010", 10),
            ("0o14", 12),
            ("0xFf", 255),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            check(text, &NodeKind::Integer(number));
        }
        for (text, number) in
            [("0.5", 0.5), (".5", 0.5), ("5.", 5.0), ("-1e3", -1000.0), ("1.5E-1", 0.15)]
        {
            check(text, &NodeKind::Float(number));
        }
    }

    #[test]
    fn everything_else_is_text() {
        for text in [
            "yes",
            "no",
            "on",
            "off",
            "y",
            "tRUE",
            "nUll",
            "-",
            "+",
            ".",
            "..",
            "0x",
            "0o8",
            "0x-1",
            "-0x1",
            "0b1",
            "1_000",
            "1e",
            "e5",
            ".e5",
            "1.2.3",
            "1 2",
            "1:30",
            "2026-09-24",
            "inf",
            "nan",
            "12ab",
            "١٢",
        ] {
            check(text, &NodeKind::Text(text.to_owned()));
        }
    }

    #[test]
    fn numbers_without_an_end_or_out_of_range_are_refused() {
        for text in [
            ".inf",
            "-.INF",
            "+.Inf",
            ".nan",
            ".NaN",
            "1e999",
            "9223372036854775808",
            "0xFFFFFFFFFFFFFFFF",
        ] {
            assert!(kind_of(text).is_err(), "{text:?}");
        }
    }
}
