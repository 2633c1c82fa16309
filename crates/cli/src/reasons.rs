//! Reasons of denials as people read them: what receipts say in Unix seconds is said in dates.

use crate::date::{iso, relative};

/// How a reason says that something has ended, or has not begun, and what stands between its times.
const ENDED: (&str, &str) = ("expected a time before ", ", found ");
const NOT_BEGUN: (&str, &str) = ("expected a time from ", " on, found ");

/// A reason with times that people can read.
pub(crate) fn readable(reason: &str) -> String {
    let ended = |end, now| match end == now {
        true => format!("it expired {}, just now", iso(end)),
        false => format!("it expired {}, {}", iso(end), relative(end, now)),
    };
    let not_begun = |begin, now| format!("it begins {}, {}", iso(begin), relative(begin, now));
    let told = replaced(reason, ENDED, ended).or_else(|| replaced(reason, NOT_BEGUN, not_begun));
    told.unwrap_or_else(|| reason.to_owned())
}

/// The text with other words for two times, if it has them.
fn replaced(
    text: &str,
    (first, between): (&str, &str),
    words: impl FnOnce(u64, u64) -> String,
) -> Option<String> {
    let (before, rest) = text.split_once(first)?;
    let (time, rest) = rest.split_once(between)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (now, behind) = rest.split_at_checked(digits)?;
    Some(format!("{before}{}{behind}", words(time.parse().ok()?, now.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn times_of_a_reason_are_dates() {
        for (reason, expected) in [
            (
                "kernel: expected a time before 1700000000, found 1700007200 [1]",
                "kernel: it expired 2023-11-14T22:13:20Z, 2h ago [1]",
            ),
            (
                "expected a time from 1700000000 on, found 1699999940",
                "it begins 2023-11-14T22:13:20Z, in 1m",
            ),
            ("expected a time before noon, found 5", "expected a time before noon, found 5"),
            ("secret-leak: a key", "secret-leak: a key"),
        ] {
            assert_eq!(readable(reason), expected);
        }
    }
}
