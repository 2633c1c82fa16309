//! Points in time for people, as ISO 8601 writes them: in UTC, or as the clocks of this machine show
//! them when that was asked for.

use std::sync::atomic::{AtomicBool, Ordering};

use chio_core::calendar::rfc3339;
use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, TimeZone as _};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Forms of a time without a zone.
const FORMS: [&str; 4] =
    ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];

/// What is expected where a point in time is read.
const EXPECTED: &str = "expected a time such as 2026-09-24T12:00:00Z, 2026-09-24T14:00+02:00 or 2026-09-24, or Unix \
     seconds";

/// Whether times are shown and read in the time zone of this machine. One process serves one
/// terminal, and every line of it is meant.
static LOCAL: AtomicBool = AtomicBool::new(false);

/// Shows and reads times in the time zone of this machine from now on.
pub(crate) fn use_local_time() {
    LOCAL.store(true, Ordering::Relaxed);
}

fn is_local() -> bool {
    LOCAL.load(Ordering::Relaxed)
}

/// The same moment on the clocks of this machine, where they are asked for and go that far.
fn on_local_clocks(seconds: u64) -> Option<DateTime<Local>> {
    let seconds = i64::try_from(seconds).ok().filter(|_| is_local())?;
    Local.timestamp_opt(seconds, 0).single()
}

/// Unix seconds as `2023-11-14T22:13:20Z`.
pub(crate) fn iso(seconds: u64) -> String {
    match on_local_clocks(seconds) {
        Some(local) => local.to_rfc3339_opts(SecondsFormat::Secs, true),
        None => rfc3339(seconds),
    }
}

/// Unix seconds as `22:13:20`.
pub(crate) fn time_of_day(seconds: u64) -> String {
    let text = iso(seconds);
    let time = text.split('T').nth(1).unwrap_or_default();
    time.chars().take("22:13:20".len()).collect()
}

/// Reads a point in time, in Unix seconds. A date alone is its first second, and a time without a
/// zone is meant as times are shown.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    let seconds = match DateTime::parse_from_rfc3339(&with_seconds(text)) {
        Ok(time) => Some(time.timestamp()),
        Err(_) => without_zone(text).and_then(|time| match is_local() {
            true => Local.from_local_datetime(&time).earliest().map(|time| time.timestamp()),
            false => Some(time.and_utc().timestamp()),
        }),
    };
    seconds.and_then(|seconds| u64::try_from(seconds).ok()).ok_or_else(|| EXPECTED.to_owned())
}

/// A time with a zone, with the seconds that ISO 8601 lets one leave out.
fn with_seconds(text: &str) -> String {
    let zone = text.char_indices().skip("2026-09-24T".len());
    let zone = zone.into_iter().find(|(_, c)| matches!(c, 'Z' | 'z' | '+' | '-'));
    match zone.map(|(at, _)| text.split_at(at)) {
        Some((time, zone)) if time.matches(':').count() == 1 => format!("{time}:00{zone}"),
        _ => text.to_owned(),
    }
}

fn without_zone(text: &str) -> Option<NaiveDateTime> {
    let time = FORMS.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let date = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    time.or_else(|| Some(date()?.and_time(NaiveTime::MIN)))
}

/// Where `time` lies as seen from `now`: `3h ago`, `in 20m`, `now`.
pub(crate) fn relative(time: u64, now: u64) -> String {
    match time.cmp(&now) {
        std::cmp::Ordering::Less => format!("{} ago", span(now - time)),
        std::cmp::Ordering::Equal => "now".to_owned(),
        std::cmp::Ordering::Greater => format!("in {}", span(time - now)),
    }
}

/// A length of time in its largest whole unit.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        DAY.. => format!("{}d", seconds / DAY),
        HOUR.. => format!("{}h", seconds / HOUR),
        MINUTE.. => format!("{}m", seconds / MINUTE),
        _ => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{iso, parse, relative, time_of_day};

    #[test]
    fn known_times_are_written_in_iso_8601() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (u64::MAX, "584554051223-11-09T07:00:15Z"),
        ] {
            assert_eq!(iso(seconds), expected);
        }
        assert_eq!(time_of_day(1_700_000_000), "22:13:20");
    }

    #[test]
    fn times_are_read_in_every_form_in_which_people_write_them() {
        for (text, expected) in [
            ("1700000000", Some(1_700_000_000)),
            ("2023-11-14T22:13:20Z", Some(1_700_000_000)),
            ("2023-11-14 22:13:20Z", Some(1_700_000_000)),
            ("2023-11-14T22:13:20", Some(1_700_000_000)),
            ("2023-11-14 22:13:20", Some(1_700_000_000)),
            ("2023-11-14T23:13:20+01:00", Some(1_700_000_000)),
            ("2023-11-14T22:13Z", Some(1_699_999_980)),
            ("2023-11-14T21:13-01:00", Some(1_699_999_980)),
            ("2023-11-14T22:13", Some(1_699_999_980)),
            ("2023-11-14", Some(1_699_920_000)),
            ("1969-12-31T23:59:59Z", None),
            ("2023-02-30", None),
            ("yesterday", None),
            ("-5", None),
            ("", None),
        ] {
            assert_eq!(parse(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn distances_are_told_in_the_largest_unit() {
        for (time, now, expected) in [
            (100, 100, "now"),
            (100, 159, "59s ago"),
            (0, 60, "1m ago"),
            (7200, 0, "in 2h"),
            (0, 86_399, "23h ago"),
            (86_400 * 400, 0, "in 400d"),
        ] {
            assert_eq!(relative(time, now), expected);
        }
    }
}
