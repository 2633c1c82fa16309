//! Points in time for people, in UTC.

use chio_core::calendar::rfc3339;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Unix seconds as `2023-11-14 22:13:20 UTC`.
pub(crate) fn utc(seconds: u64) -> String {
    rfc3339(seconds).replace('T', " ").replace('Z', " UTC")
}

/// Unix seconds as `22:13:20`, UTC.
pub(crate) fn time_of_day(seconds: u64) -> String {
    let text = rfc3339(seconds);
    text.split(['T', 'Z']).nth(1).unwrap_or_default().to_owned()
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
    use super::{relative, utc};

    #[test]
    fn known_times_are_written_in_utc() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (68_169_599, "1972-02-28 23:59:59 UTC"),
            (68_169_600, "1972-02-29 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_700_000_000, "2023-11-14 22:13:20 UTC"),
            (1_704_067_199, "2023-12-31 23:59:59 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
            (253_402_300_799, "9999-12-31 23:59:59 UTC"),
            (u64::MAX, "584554051223-11-09 07:00:15 UTC"),
        ] {
            assert_eq!(utc(seconds), expected);
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
