//! Points in time for people, in UTC.

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Days in 400 years, after which the calendar repeats.
const ERA: u64 = 146_097;
/// Days from the first of March of the year 0 to the first of January 1970.
const EPOCH: u64 = 719_468;

/// Unix seconds as `2023-11-14 22:13:20 UTC`.
pub(crate) fn utc(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / DAY);
    let (hour, minute, second) = (seconds / HOUR % 24, seconds / MINUTE % 60, seconds % MINUTE);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Unix seconds as `22:13:20`, UTC.
pub(crate) fn time_of_day(seconds: u64) -> String {
    let (hour, minute, second) = (seconds / HOUR % 24, seconds / MINUTE % 60, seconds % MINUTE);
    format!("{hour:02}:{minute:02}:{second:02}")
}

/// Year, month and day of the day with this number, from 1970 on.
///
/// Years begin in March here, so that the leap day is the last: months then have a pattern of
/// 153 days in five, and only the end has to be shifted back.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + EPOCH;
    let day_of_era = days % ERA;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = days / ERA * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// The number of the day with this name, from 1970 on; none where the calendar has none.
fn day_number(year: u64, month: u64, day: u64) -> Option<u64> {
    let years = if month <= 2 { year.checked_sub(1)? } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day.checked_sub(1)?;
    let year_of_era = years % 400;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (years / 400 * ERA + day_of_era).checked_sub(EPOCH)?;
    // The thirtieth of February would have a number as well.
    (civil(days) == (year, month, day)).then_some(days)
}

/// Unix seconds of a time such as `2026-09-24T12:00:00Z`.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(day_number(year, month, day)? * DAY + hour * HOUR + minute * MINUTE + second)
}

/// Three numbers of so many digits each.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; 3];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        let whole = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = part.parse().ok().filter(|_| whole)?;
    }
    parts.next().is_none().then_some(numbers)
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
    use super::{civil, day_number, parse, relative, utc};

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
        for days in 0..2 * super::ERA {
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
            assert_eq!(parse(text), expected, "{text}");
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
