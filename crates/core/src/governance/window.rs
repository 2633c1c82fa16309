//! The time in which an artifact holds.

/// Why an artifact does not hold at a moment. Times are Unix seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The moment is before the first.
    #[error("expected a time from {issued_at} on, found {now}")]
    NotYetValid {
        /// The first moment.
        issued_at: i128,
        /// The moment asked about.
        now: i128,
    },
    /// The moment is not before the end.
    #[error("expected a time before {expires_at}, found {now}")]
    Expired {
        /// The first moment after the last.
        expires_at: i128,
        /// The moment asked about.
        now: i128,
    },
}

/// Holds `now` against a window: `issued_at <= now < expires_at`.
pub(super) fn check_window(
    issued_at: impl Into<i128>,
    expires_at: impl Into<i128>,
    now: impl Into<i128>,
) -> Result<(), WindowError> {
    let (issued_at, expires_at, now) = (issued_at.into(), expires_at.into(), now.into());
    if now < issued_at {
        return Err(WindowError::NotYetValid { issued_at, now });
    }
    if now >= expires_at {
        return Err(WindowError::Expired { expires_at, now });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_from_its_first_second_up_to_its_last() {
        let too_early = Err(WindowError::NotYetValid { issued_at: 10, now: 9 });
        let too_late = |now| Err(WindowError::Expired { expires_at: 20, now });
        let cases =
            [(9, too_early), (10, Ok(())), (19, Ok(())), (20, too_late(20)), (21, too_late(21))];
        for (now, expected) in cases {
            assert_eq!(check_window(10_u64, 20_u64, now), expected, "at {now}");
        }
    }

    #[test]
    fn an_empty_window_never_holds() {
        assert!(check_window(10_i64, 10_i64, 10_u64).is_err());
        assert!(check_window(u64::MAX, u64::MAX, u64::MAX).is_err());
    }
}
