//! Tests of the calendar: known times, every day of two eras, and texts that are no time.

use super::*;

#[test]
fn every_day_of_two_eras_follows_the_day_before() {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let length = |year: u64, month: u64| match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let mut expected = (1970, 1, 1);
    for days in 0..2 * ERA {
        assert_eq!(civil(days), expected);
        let (year, month, day) = expected;
        assert_eq!(day_number(year, month, day), Some(days));
        expected = match (month, day) {
            (12, 31) => (year + 1, 1, 1),
            _ if day == length(year, month) => (year, month + 1, 1),
            _ => (year, month, day + 1),
        };
    }
}

#[test]
fn times_are_read_in_one_form() {
    for (text, expected) in [
        ("1970-01-01T00:00:00Z", Some(0)),
        ("2000-02-29T00:00:00Z", Some(951_782_400)),
        ("2026-09-24T12:00:00Z", Some(1_790_251_200)),
        ("2023-02-29T00:00:00Z", None),
        ("2023-13-01T00:00:00Z", None),
        ("2023-00-01T00:00:00Z", None),
        ("2023-01-00T00:00:00Z", None),
        ("1969-12-31T23:59:59Z", None),
        ("2023-01-01T24:00:00Z", None),
        ("2023-01-01T00:60:00Z", None),
        ("2023-01-01T00:00:60Z", None),
        ("2023-1-01T00:00:00Z", None),
        ("2023-01-01T00:00:00", None),
        ("2023-01-01 00:00:00Z", None),
        ("2023-01-01-01T00:00:00Z", None),
        ("2023-01-01T+1:00:00Z", None),
        ("", None),
    ] {
        assert_eq!(parse_utc(text), expected, "{text}");
    }
}

#[test]
fn times_are_written_and_read_again() {
    for (time, text) in [
        (0, "1970-01-01T00:00:00"),
        (951_782_399, "2000-02-28T23:59:59"),
        (951_782_400, "2000-02-29T00:00:00"),
        (1_700_000_000, "2023-11-14T22:13:20"),
        (4_102_444_800, "2100-01-01T00:00:00"),
    ] {
        assert_eq!(rfc3339(time), format!("{text}Z"));
        assert_eq!(rfc3339_millis(time), format!("{text}.000Z"));
        assert_eq!(parse_rfc3339(&rfc3339(time)), Some(time));
        assert_eq!(parse_rfc3339(&rfc3339_millis(time)), Some(time));
    }
    assert_eq!(parse_rfc3339("2023-11-14T22:13:20Z"), Some(1_700_000_000));
    assert_eq!(parse_rfc3339("2023-11-14T22:13:20+00:00"), Some(1_700_000_000));
    assert_eq!(parse_rfc3339("2023-11-14T22:13:20.000001Z"), Some(1_700_000_001));
}

#[test]
fn a_text_that_is_no_time_is_refused() {
    for text in [
        "",
        "Z",
        "2023-11-14",
        "2023-11-14T22:13:20",
        "2023-13-14T22:13:20Z",
        "2023-11-14T25:13:20Z",
        "2023-11-14T22:13:20.xZ",
        "1969-12-31T23:59:59Z",
        "2023-11-14T22:13:20+02:00",
        "yesterday",
    ] {
        assert_eq!(parse_rfc3339(text), None, "{text}");
    }
}

#[test]
fn known_seconds_have_their_dates() {
    for (unix, expected, day) in [
        (0, "1970-01-01T00:00:00Z", "thursday"),
        (951_782_399, "2000-02-28T23:59:59Z", "monday"),
        (951_782_400, "2000-02-29T00:00:00Z", "tuesday"),
        (1_709_251_199, "2024-02-29T23:59:59Z", "thursday"),
        (1_790_251_200, "2026-09-24T12:00:00Z", "thursday"),
        (4_107_542_400, "2100-03-01T00:00:00Z", "monday"),
        (253_402_300_799, "9999-12-31T23:59:59Z", "friday"),
    ] {
        assert_eq!((rfc3339(unix).as_str(), weekday(unix)), (expected, day));
    }
}

#[test]
fn known_times_of_many_years_are_read() {
    for (text, seconds) in [
        ("1970-01-01T00:00:00Z", 0),
        ("1972-02-29T00:00:00Z", 68_169_600),
        ("2000-03-01T00:00:00Z", 951_868_800),
        ("2026-09-24T12:00:00Z", 1_790_251_200),
        ("2100-03-01T00:00:00Z", 4_107_542_400),
        ("9999-12-31T23:59:59Z", 253_402_300_799),
    ] {
        assert_eq!(parse_utc(text), Some(seconds), "{text}");
    }
}

#[test]
fn a_text_that_is_no_time_in_utc_is_refused() {
    for text in [
        "",
        "Z",
        "T",
        "TZ",
        "2026-09-24",
        "2026-09-24T12:00:00",
        "2026-09-24T12:00Z",
        "2026-09-24 12:00:00Z",
        "2026-09-24T12:00:00+02:00",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-09-00T00:00:00Z",
        "2026-09-24T24:00:00Z",
        "2026-09-24T12:60:00Z",
        "2026-09-24T12:00:60Z",
        "1969-12-31T23:59:59Z",
        "+026-09-24T12:00:00Z",
        "2026-9-24T12:00:00Z",
        "2026-09-24-01T12:00:00Z",
        "2026-09-24T12:00:00.5Z",
    ] {
        assert_eq!(parse_utc(text), None, "{text}");
    }
}

#[test]
fn http_writes_dates_in_its_own_way() {
    for (seconds, expected) in [
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (1_700_000_000, "Tue, 14 Nov 2023 22:13:20 GMT"),
    ] {
        assert_eq!(http_date(seconds), expected);
    }
}
