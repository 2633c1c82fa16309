//! The calendar: Unix seconds from and to dates in UTC, as RFC 3339 writes them.

/// Seconds of a day.
const DAY: u64 = 86_400;
/// Days in 400 years, after which the calendar repeats.
const ERA: u64 = 146_097;
/// Days from 1 March of year 0 to 1 January 1970.
const EPOCH: u64 = 719_468;

/// Unix seconds as `2023-11-14T22:13:20Z`.
pub fn rfc3339(seconds: u64) -> String {
    written(seconds, "Z")
}

/// Unix seconds as `2023-11-14T22:13:20.000Z`.
pub fn rfc3339_millis(seconds: u64) -> String {
    written(seconds, ".000Z")
}

fn written(seconds: u64, end: &str) -> String {
    let (year, month, day) = civil(seconds / DAY);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{end}")
}

/// Unix seconds as HTTP writes them: `Tue, 14 Nov 2023 22:13:20 GMT`.
pub fn http_date(seconds: u64) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day) = civil(seconds / DAY);
    let month = usize::try_from(month).ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    let weekday = match weekday(seconds) {
        "monday" => "Mon",
        "tuesday" => "Tue",
        "wednesday" => "Wed",
        "thursday" => "Thu",
        "friday" => "Fri",
        "saturday" => "Sat",
        _ => "Sun",
    };
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let month = month.copied().unwrap_or_default();
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Unix seconds of a time such as `2026-09-24T12:00:00Z`.
pub fn parse_utc(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(day_number(year, month, day)? * DAY + hour * 3600 + minute * 60 + second)
}

/// The first Unix second that is not before a time in UTC, in any form of RFC 3339.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"))?;
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let rounded_up = u64::from(fraction.bytes().any(|byte| byte != b'0'));
    // A leap second has no number of its own.
    let (time, leap) = match time.strip_suffix(":60") {
        Some(minute) => (format!("{minute}:59"), 1),
        None => (time.to_owned(), 0),
    };
    Some(parse_utc(&format!("{date}T{time}Z"))? + leap + rounded_up)
}

/// The day of the week, in lowercase English.
pub const fn weekday(seconds: u64) -> &'static str {
    // Unix time began on a Thursday.
    match seconds / DAY % 7 {
        0 => "thursday",
        1 => "friday",
        2 => "saturday",
        3 => "sunday",
        4 => "monday",
        5 => "tuesday",
        _ => "wednesday",
    }
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

/// The number of a day, from 1970 on; none where the calendar has no such day.
fn day_number(year: u64, month: u64, day: u64) -> Option<u64> {
    let years = if month <= 2 { year.checked_sub(1)? } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day.checked_sub(1)?;
    let year_of_era = years % 400;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (years / 400 * ERA + day_of_era).checked_sub(EPOCH)?;
    // 30 February would have a number as well.
    (civil(days) == (year, month, day)).then_some(days)
}

/// Three numbers with these counts of digits.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; 3];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = part.parse().ok().filter(|_| is_number)?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests;
