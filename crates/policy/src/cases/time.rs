//! Points in time in RFC 3339 form, in UTC.

/// Unix seconds of a time such as `2026-09-24T12:00:00Z`, from 1970 to 9999, in UTC.
pub(super) fn seconds_of(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let real = year >= 1970
        && (1..=12).contains(&month)
        && (1..=length_of(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    let days = days_before(year, month) + day - 1;
    real.then_some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// Three numbers with the given numbers of digits.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(between);
    let mut next = |length: usize| {
        let part = parts.next()?;
        let right = part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        if right { part.parse().ok() } else { None }
    };
    let [one, two, three] = digits;
    let numbers = [next(one)?, next(two)?, next(three)?];
    parts.next().is_none().then_some(numbers)
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn length_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to the first of this month.
fn days_before(year: u64, month: u64) -> u64 {
    let years = (1970..year).map(|year| 365 + u64::from(is_leap(year)));
    let months = (1..month).map(|month| length_of(year, month));
    years.sum::<u64>() + months.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::seconds_of;

    #[test]
    fn known_times_are_read() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1972-02-29T00:00:00Z", 68_169_600),
            ("2000-03-01T00:00:00Z", 951_868_800),
            ("2026-09-24T12:00:00Z", 1_790_251_200),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(seconds_of(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
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
            assert_eq!(seconds_of(text), None, "{text}");
        }
    }
}
