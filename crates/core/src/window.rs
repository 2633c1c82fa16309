//! The time window in which an artifact is valid: from one second to just before another.

/// The seconds in which something holds, in Unix time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first second in.
    pub issued_at: u64,
    /// The first second out.
    pub expires_at: u64,
}

/// Why something does not hold at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The moment is before the first.
    #[error("expected a time from {issued_at} on, found {now}")]
    NotYetValid {
        /// The first second in.
        issued_at: u64,
        /// The moment asked about.
        now: u64,
    },
    /// The moment is not before the end.
    #[error("expected a time before {expires_at}, found {now}")]
    Expired {
        /// The first second out.
        expires_at: u64,
        /// The moment asked about.
        now: u64,
    },
}

impl Validity {
    /// Whether `now` is inside.
    #[must_use]
    pub const fn contains(&self, now: u64) -> bool {
        self.check(now).is_ok()
    }

    /// Checks that `now` is inside.
    ///
    /// # Errors
    /// When it is before or after.
    pub const fn check(&self, now: u64) -> Result<(), WindowError> {
        if now < self.issued_at {
            return Err(WindowError::NotYetValid { issued_at: self.issued_at, now });
        }
        if now >= self.expires_at {
            return Err(WindowError::Expired { expires_at: self.expires_at, now });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Validity, WindowError};

    #[test]
    fn a_window_holds_from_its_first_second_up_to_its_last() {
        let too_early = Err(WindowError::NotYetValid { issued_at: 10, now: 9 });
        let too_late = |now| Err(WindowError::Expired { expires_at: 20, now });
        let cases =
            [(9, too_early), (10, Ok(())), (19, Ok(())), (20, too_late(20)), (21, too_late(21))];
        for (now, expected) in cases {
            let window = Validity { issued_at: 10, expires_at: 20 };
            assert_eq!(window.check(now), expected, "at {now}");
            assert_eq!(window.contains(now), expected.is_ok(), "at {now}");
        }
    }

    #[test]
    fn an_empty_window_never_holds() {
        assert!(!Validity { issued_at: 10, expires_at: 10 }.contains(10));
        assert!(!Validity { issued_at: u64::MAX, expires_at: u64::MAX }.contains(u64::MAX));
    }
}
