//! Host names that mean something inside a network, and patterns of names.

use std::fmt;
use std::str::FromStr;

use url::Host;

use super::block::{Block, BlockError};

/// Names that always mean this machine.
const LOOPBACK: [&str; 4] = ["localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"];

/// Last labels that no public name has: special uses (RFC 6761, 6762, 7686, 8375), the one that
/// ICANN keeps for private use, and those that private networks have long taken.
const LOCAL_SUFFIXES: [&str; 16] = [
    "internal",
    "local",
    "localdomain",
    "localhost",
    "home.arpa",
    "lan",
    "home",
    "corp",
    "intranet",
    "private",
    "onion",
    "alt",
    "invalid",
    "in-addr.arpa",
    "ip6.arpa",
    "svc",
];

/// Whether a name means this machine.
pub(super) fn is_loopback_name(name: &str) -> bool {
    LOOPBACK.contains(&name) || is_below(name, "localhost")
}

/// Whether a name means something only inside a network: a name without a dot does, because
/// search domains are put behind it.
pub(super) fn is_local_name(name: &str) -> bool {
    !name.contains('.')
        || LOCAL_SUFFIXES.iter().any(|suffix| name == *suffix || is_below(name, suffix))
}

fn is_below(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// A pattern of addresses or names: `10.0.0.0/8`, `192.0.2.7`, `host.example`, `*.example`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AddressPattern(Kind);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Block(Block),
    Name(String),
    Below(String),
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected `ADDRESS`, `ADDRESS/BITS`, `host.name` or `*.host.name`, found `{found}`: {reason}"
)]
pub struct PatternError {
    found: String,
    reason: String,
}

impl AddressPattern {
    /// The block, where the pattern is one.
    pub(super) const fn block(&self) -> Option<&Block> {
        match &self.0 {
            Kind::Block(block) => Some(block),
            Kind::Name(_) | Kind::Below(_) => None,
        }
    }

    /// Whether a name, as a URL has it, is meant.
    pub(super) fn holds_name(&self, name: &str) -> bool {
        match &self.0 {
            Kind::Block(_) => false,
            Kind::Name(own) => own == name,
            Kind::Below(suffix) => is_below(name, suffix),
        }
    }
}

impl FromStr for AddressPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let wrong = |reason: String| PatternError { found: text.to_owned(), reason };
        match text.parse() {
            Ok(block) => return Ok(Self(Kind::Block(block))),
            Err(error @ BlockError::HostBits(_)) => return Err(wrong(error.to_string())),
            Err(BlockError::Form) => {}
        }
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        // As URLs are read, so that the pattern has the form in which names are compared.
        match Host::parse(name) {
            Ok(Host::Domain(name)) if !name.contains('*') => {
                let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
                Ok(Self(if below { Kind::Below(name) } else { Kind::Name(name) }))
            }
            Ok(Host::Domain(_)) => Err(wrong("`*` stands only for whole labels in front".into())),
            Ok(Host::Ipv4(_) | Host::Ipv6(_)) => {
                Err(wrong("an address is written in its plain form".into()))
            }
            Err(error) => Err(wrong(error.to_string())),
        }
    }
}

impl fmt::Display for AddressPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Block(block) => block.fmt(f),
            Kind::Name(name) => f.write_str(name),
            Kind::Below(suffix) => write!(f, "*.{suffix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressPattern, is_local_name, is_loopback_name};

    #[test]
    fn names_of_this_machine_and_of_networks_are_known() {
        for name in ["localhost", "a.localhost", "a.b.localhost", "ip6-loopback"] {
            assert!(is_loopback_name(name) && is_local_name(name), "{name}");
        }
        for name in ["metadata", "metadata.google.internal", "printer.local", "db.svc", "x.onion"] {
            assert!(!is_loopback_name(name) && is_local_name(name), "{name}");
        }
        for name in ["example.com", "localhost.com", "notlocalhost.org", "internal.example.com"] {
            assert!(!is_loopback_name(name) && !is_local_name(name), "{name}");
        }
    }

    #[test]
    fn a_pattern_means_the_name_or_what_is_below_it() {
        for (pattern, name, holds) in [
            ("host.example", "host.example", true),
            ("HOST.example.", "host.example", true),
            ("host.example", "a.host.example", false),
            ("*.host.example", "a.host.example", true),
            ("*.host.example", "a.b.host.example", true),
            ("*.host.example", "host.example", false),
            ("*.host.example", "ahost.example", false),
            ("bücher.example", "xn--bcher-kva.example", true),
            ("10.0.0.0/8", "10.0.0.1", false),
        ] {
            let pattern: AddressPattern = pattern.parse().unwrap();
            assert_eq!(pattern.holds_name(name), holds, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in
            ["", "*", "*.", "a*.example", "*.*.example", "0x7f.1", "10.0.0.1/8", "a b", "[::1]"]
        {
            let outcome = text.parse::<AddressPattern>();
            assert!(outcome.is_err(), "{text} {outcome:?}");
        }
    }
}
