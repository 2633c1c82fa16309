//! A kernel's own names of calls, which tell when they were made.

use uuid::Uuid;

/// How they begin.
const REQUEST: &str = "req-";

/// When a kernel made this name of a call, in milliseconds since 1970.
pub(crate) fn made_at(id: &str) -> Option<u64> {
    let name = Uuid::try_parse(id.strip_prefix(REQUEST)?).ok()?;
    let (seconds, nanos) = name.get_timestamp()?.to_unix();
    Some(seconds * 1000 + u64::from(nanos) / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::made_at;

    #[test]
    fn the_name_of_a_request_tells_when_it_was_made() {
        // The example of RFC 9562: Tuesday, 22 February 2022, 19:22:22 UTC.
        let name = "req-017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
        assert_eq!(made_at(name), Some(1_645_557_742_000));
        for other in ["req-1", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "req-", ""] {
            assert_eq!(made_at(other), None, "{other}");
        }
    }
}
