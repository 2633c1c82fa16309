//! Times in UTC as RFC 3339 writes them.

const SECONDS_PER_DAY: u64 = 86_400;
/// Days from 1 March of year 0, where eras of 400 years begin, to 1 January 1970.
const EPOCH: u64 = 719_468;
const DAYS_PER_ERA: u64 = 146_097;

/// A time in Unix seconds as `YYYY-MM-DDTHH:mm:ssZ`.
#[must_use]
pub fn rfc3339(seconds: u64) -> String {
    format!("{}Z", date_time(seconds))
}

/// A time in Unix seconds as `YYYY-MM-DDTHH:mm:ss.sssZ`.
#[must_use]
pub fn rfc3339_millis(seconds: u64) -> String {
    format!("{}.000Z", date_time(seconds))
}

fn date_time(seconds: u64) -> String {
    let (days, rest) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    let shifted = days + EPOCH;
    let (era, day_of_era) = (shifted / DAYS_PER_ERA, shifted % DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest % 3600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// The first Unix second that is not before a time in UTC; none when the text is no such time.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"))?;
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, month, day) = numbers(date, '-', 4)?;
    let (hour, minute, second) = numbers(time, ':', 2)?;
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day) && year >= 1970;
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * DAYS_PER_ERA + day_of_era).checked_sub(EPOCH)?;
    let rounded_up = u64::from(fraction.bytes().any(|byte| byte != b'0'));
    Some(days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second + rounded_up)
}

/// Three numbers between separators: the first with `width` digits, the others with two.
fn numbers(text: &str, separator: char, width: usize) -> Option<(u64, u64, u64)> {
    let mut parts = text.split(separator);
    let mut next = |width: usize| {
        let part = parts.next()?;
        let is_number = part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().ok()).flatten()
    };
    let found = (next(width)?, next(2)?, next(2)?);
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
