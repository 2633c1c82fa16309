//! Lengths of time as people write them: `30s`, `15m`, `8h`, `7d`, or seconds.

use std::time::Duration;

const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];

/// Reads a duration, in seconds; never zero.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let unit = UNITS.iter().find(|(letter, _)| text.ends_with(*letter));
    let digits = unit.map_or(text, |(letter, _)| text.trim_end_matches(*letter));
    let seconds = unit.map_or(1, |(_, seconds)| *seconds);
    // `parse` would take a sign, and `trim_end_matches` takes more than one letter.
    let whole = text.len() - digits.len() <= 1 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|number| whole && *number > 0);
    number.and_then(|number| number.checked_mul(seconds)).ok_or_else(|| {
        "expected a duration above zero, such as 30s, 15m, 8h, 7d or a number of seconds".to_owned()
    })
}

/// Reads a duration that may also be in milliseconds, as `250ms`; never zero.
pub(crate) fn parse_fine(text: &str) -> Result<Duration, String> {
    match text.strip_suffix("ms") {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            parse(digits).map(Duration::from_millis)
        }
        _ => parse(text).map(Duration::from_secs),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{parse, parse_fine};

    #[test]
    fn some_durations_may_be_in_milliseconds() {
        assert_eq!(parse_fine("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_fine("2m"), Ok(Duration::from_secs(120)));
        for text in ["0ms", "ms", "-1ms", "1sms", "1mms"] {
            assert!(parse_fine(text).is_err(), "{text}");
        }
    }

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
            assert_eq!(parse(text), Ok(expected), "{text}");
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
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
