//! The versions of the protocol, and what each has.

mod added;

use serde_json::{Map, Value};

pub(crate) use added::Object;
use added::{BLOCKS, MEMBERS, METHODS, PARAMS};

/// A version, by the month of its date; later ones are greater.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::EnumString, strum::IntoStaticStr,
)]
#[strum(const_into_str)]
pub(crate) enum Version {
    #[strum(serialize = "2024-11-05")]
    Nov2024,
    #[strum(serialize = "2025-03-26")]
    Mar2025,
    #[strum(serialize = "2025-06-18")]
    Jun2025,
    #[strum(serialize = "2025-11-25")]
    Nov2025,
    #[strum(serialize = "2026-07-28")]
    Jul2026,
}

impl Version {
    /// All that are known.
    pub(crate) const ALL: [Self; 5] =
        [Self::Jul2026, Self::Nov2025, Self::Jun2025, Self::Mar2025, Self::Nov2024];

    /// The version of a client that asks for none.
    pub(crate) const ASSUMED: Self = Self::Nov2025;

    /// The newest with nothing to leave out.
    const WHOLE: Self = Self::Nov2025;

    /// Its date.
    pub(crate) const fn name(self) -> &'static str {
        self.into_str()
    }

    /// Whether clients are told that it can be spoken. The last one is a protocol without sessions,
    /// and is spoken only with clients that open one by it of their own accord.
    pub(crate) const fn is_offered(self) -> bool {
        !matches!(self, Self::Jul2026)
    }

    /// Whether every message is written as it is.
    pub(crate) fn is_whole(self) -> bool {
        self >= Self::WHOLE
    }

    /// Whether streams begin with a number to go on from.
    pub(crate) fn primes(self) -> bool {
        self >= Self::Nov2025
    }

    /// Whether results say what they are.
    pub(crate) fn types_results(self) -> bool {
        self >= Self::Jul2026
    }

    /// Whether calls can be made as tasks.
    pub(crate) fn has_tasks(self) -> bool {
        self.knows_method("tasks/get")
    }

    /// Whether several messages can come at once.
    pub(crate) fn has_batches(self) -> bool {
        self == Self::Mar2025
    }

    /// Whether a method is not one of a later version.
    pub(crate) fn knows_method(self, method: &str) -> bool {
        !METHODS.iter().any(|(since, added)| self < *since && *added == method)
    }

    /// Whether blocks of a type are not of a later version.
    pub(crate) fn knows_block(self, kind: &str) -> bool {
        !BLOCKS.iter().any(|(since, added)| self < *since && *added == kind)
    }

    /// Whether a question has no params of a later version that matter.
    pub(crate) fn knows_params(self, params: &Map<String, Value>) -> bool {
        !PARAMS.iter().any(|(since, added)| self < *since && params.contains_key(*added))
    }

    /// Takes the members out of an object that later versions have added.
    pub(crate) fn strip(self, object: Object, members: &mut Map<String, Value>) {
        let later = MEMBERS.iter().filter(|(since, of, _)| self < *since && *of == object);
        for name in later.flat_map(|(.., names)| *names) {
            members.remove(*name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Version::{Jul2026, Jun2025, Mar2025, Nov2024, Nov2025};
    use super::*;

    #[test]
    fn versions_are_their_dates_in_order() {
        assert!(Version::ALL.is_sorted_by(|later, earlier| later > earlier));
        for version in Version::ALL {
            assert_eq!(version.name().parse(), Ok(version));
        }
        for other in ["2025-11-26", "", "2025-11-25 ", "Nov2025"] {
            assert!(other.parse::<Version>().is_err(), "{other}");
        }
    }

    #[test]
    fn versions_say_what_they_have() {
        for (version, expected) in [
            (Nov2024, [false, false, false, false, false]),
            (Mar2025, [true, false, false, false, false]),
            (Jun2025, [false, false, false, false, false]),
            (Nov2025, [false, true, true, true, false]),
            (Jul2026, [false, true, true, true, true]),
        ] {
            let found = [
                version.has_batches(),
                version.primes(),
                version.has_tasks(),
                version.is_whole(),
                version.types_results(),
            ];
            assert_eq!(found, expected, "{version:?}");
        }
    }

    #[test]
    fn nothing_is_added_by_a_version_that_has_it_all() {
        let members = MEMBERS.iter().map(|(since, ..)| since);
        let others = BLOCKS.iter().chain(METHODS).chain(PARAMS).map(|(since, _)| since);
        assert!(members.chain(others).all(|since| *since <= Version::WHOLE));
    }
}
