//! Lengths of time as people write them: `30s`, `15m`, `8h`, `7d`, or seconds.

/// A length of time in seconds; none where the text is no such length, or zero.
pub fn seconds(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.strip_prefix(number)? {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    // `parse` would take a sign.
    let whole = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse::<u64>().ok().filter(|number| whole && *number > 0)?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn durations_are_read_in_every_unit() {
        for (text, expected) in [
            ("30s", 30),
            ("15m", 900),
            ("8h", 28_800),
            ("7d", 604_800),
            ("90", 90),
            ("007m", 420),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "0",
            "0h",
            "h",
            "1hh",
            "1h30m",
            "-1",
            "+1",
            "+1h",
            "1.5h",
            "1 h",
            " 1",
            "1w",
            "1H",
            "18446744073709551616",
            "18446744073709551615d",
            "٣h",
        ] {
            assert!(seconds(text).is_none(), "{text}");
        }
    }
}
