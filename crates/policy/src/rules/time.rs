//! The hour, the weekday and the date of a second, in UTC.

const DAY: u64 = 86_400;

/// The hour of the day.
pub(super) const fn hour(unix: u64) -> u64 {
    unix % DAY / 3600
}

/// The day of the week.
pub(super) const fn weekday(unix: u64) -> &'static str {
    // The first day of Unix time was a Thursday.
    match unix / DAY % 7 {
        0 => "thursday",
        1 => "friday",
        2 => "saturday",
        3 => "sunday",
        4 => "monday",
        5 => "tuesday",
        _ => "wednesday",
    }
}

/// The second as `datetime` reads it.
pub(super) fn text(unix: u64) -> String {
    let (year, month, day) = date(unix / DAY);
    let (minute, second) = (unix % 3600 / 60, unix % 60);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{minute:02}:{second:02}Z", hour(unix))
}

/// Year, month and day. Years are counted from March, so that the leap day is the last of them.
const fn date(days: u64) -> (u64, u64, u64) {
    // Days from 0000-03-01 to 1970-01-01.
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!((text(unix).as_str(), weekday(unix)), (expected, day));
        }
        assert_eq!((hour(1_790_251_200), hour(86_399)), (12, 23));
    }
}
