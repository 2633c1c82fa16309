//! Times as A2A writes them.

/// A time in Unix seconds as `YYYY-MM-DDTHH:mm:ss.sssZ`.
pub(crate) fn timestamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of year 0, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest % 3600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z")
}

/// The first second that is not before the time that a text in UTC tells; none when it tells none.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"))?;
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let (time, fraction) = time.split_once('.').map_or((time, ""), |(time, rest)| (time, rest));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let numbers = |text: &str, by: char, wide: [usize; 3]| {
        let mut parts = text.split(by);
        let mut next = |width: usize| {
            let part = parts.next()?;
            let plain = part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| part.parse::<u64>().ok()).flatten()
        };
        let [first, second, third] = wide;
        let found = (next(first)?, next(second)?, next(third)?);
        parts.next().is_none().then_some(found)
    };
    let (year, month, day) = numbers(date, '-', [4, 2, 2])?;
    let (hour, minute, second) = numbers(time, ':', [2, 2, 2])?;
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day) && year >= 1970;
    if !fits || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * 146_097 + day_of_era).checked_sub(719_468)?;
    let part = u64::from(fraction.bytes().any(|byte| byte != b'0'));
    Some(days * 86_400 + hour * 3600 + minute * 60 + second + part)
}

#[cfg(test)]
mod tests {
    use super::{seconds, timestamp};

    #[test]
    fn times_are_written_with_milliseconds_and_read_again() {
        for (time, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_700_000_000, "2023-11-14T22:13:20.000Z"),
            (4_102_444_800, "2100-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(time), text);
            assert_eq!(seconds(text), Some(time));
        }
        assert_eq!(seconds("2023-11-14T22:13:20Z"), Some(1_700_000_000));
        assert_eq!(seconds("2023-11-14T22:13:20+00:00"), Some(1_700_000_000));
        assert_eq!(seconds("2023-11-14T22:13:20.000001Z"), Some(1_700_000_001));
    }

    #[test]
    fn what_tells_no_time_is_none() {
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
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
