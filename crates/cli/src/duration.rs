//! Lengths of time as arguments: `30s`, `15m`, `8h`, `7d`, or seconds.

use std::time::Duration;

use chio_core::duration::seconds;

/// Reads a duration, in seconds; never zero.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    seconds(text).ok_or_else(|| {
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

    use super::parse_fine;

    #[test]
    fn some_durations_may_be_in_milliseconds() {
        assert_eq!(parse_fine("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_fine("2m"), Ok(Duration::from_secs(120)));
        for text in ["0ms", "ms", "-1ms", "1sms", "1mms"] {
            assert!(parse_fine(text).is_err(), "{text}");
        }
    }
}
