//! The configuration of the agent that the edge serves.

use std::collections::BTreeMap;

use chio_core::signed::ArtifactError;
use chio_core::with_defaults;

use crate::limits::A2aLimits;

with_defaults! {
    /// The configuration of an agent: what its card says, and how clients may call it.
    #[derive(Clone)]
    pub struct A2aEdgeConfig {
        /// The tool servers that are offered, by id.
        pub servers: Vec<String> = Vec::new(),
        /// The agent's name.
        pub agent_name: String = "Chio A2A Edge".to_owned(),
        /// What the agent is, for people.
        pub agent_description: String = "Tools behind a Chio kernel, as skills".to_owned(),
        /// The agent's version, a semantic one.
        pub agent_version: String = env!("CARGO_PKG_VERSION").to_owned(),
        /// Where the agent is reached, without a slash at the end.
        pub url: String = String::new(),
        /// Whether HTTP+JSON is served, below `/rest`.
        pub http_json: bool = false,
        /// Whether methods of A2A 1.0 are taken without the `A2A-Version` header.
        pub accept_missing_version: bool = false,
        /// How much clients may ask for.
        pub limits: A2aLimits = A2aLimits::default(),
        /// Tags of skills, by id.
        pub tags: BTreeMap<String, Vec<String>> = BTreeMap::new(),
    }
}

impl A2aEdgeConfig {
    /// The usual options for these tool servers.
    pub fn new(servers: Vec<String>, url: impl Into<String>) -> Self {
        Self { servers, url: url.into(), ..Self::default() }
    }

    /// Checks what every card repeats.
    pub(crate) fn check(&self) -> Result<(), A2aError> {
        let texts =
            [("name", &self.agent_name), ("version", &self.agent_version), ("url", &self.url)];
        for (member, text) in texts {
            if text.is_empty() || text.trim() != text {
                return Err(A2aError::Text(member));
            }
        }
        if !is_semantic(&self.agent_version) {
            return Err(A2aError::Version);
        }
        if self.url.ends_with('/') {
            return Err(A2aError::Slash);
        }
        Ok(())
    }
}

/// Whether this is a semantic version: three numbers, then what is before a release, then the build.
fn is_semantic(version: &str) -> bool {
    let is_number = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'))
    };
    let are_names = |part: &str| {
        part.split('.').all(|name| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
    };
    let (rest, build) = version.split_once('+').map_or((version, None), |(a, b)| (a, Some(b)));
    let (core, before) = rest.split_once('-').map_or((rest, None), |(a, b)| (a, Some(b)));
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() == 3
        && numbers.iter().all(|part| !part.is_empty() && is_number(part))
        && build.is_none_or(are_names)
        && before.is_none_or(are_names)
}

/// Why an agent cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum A2aError {
    /// A text is blank or padded.
    #[error("expected the agent's {0} to say something, without blanks around it")]
    Text(&'static str),
    /// The version is none.
    #[error("expected a semantic version of the agent, such as 1.2.0")]
    Version,
    /// The URL has a slash too many.
    #[error("expected the agent's url without a slash at the end")]
    Slash,
    /// A manifest breaks a rule.
    #[error("the manifest of server `{server}` is not valid: {error}")]
    Manifest {
        /// Whose.
        server: String,
        /// What is wrong with it.
        error: ArtifactError,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: BRIDGE-061, BRIDGE-062
    #[test]
    fn what_every_card_repeats_says_something() {
        let options = || A2aEdgeConfig::new(Vec::new(), "http://localhost:8080");
        assert_eq!(options().check(), Ok(()));
        for text in ["", " ", " padded", "padded\n"] {
            let name = A2aEdgeConfig { agent_name: text.to_owned(), ..options() };
            assert_eq!(name.check(), Err(A2aError::Text("name")), "{text:?}");
            let version = A2aEdgeConfig { agent_version: text.to_owned(), ..options() };
            assert_eq!(version.check(), Err(A2aError::Text("version")), "{text:?}");
            let url = A2aEdgeConfig { url: text.to_owned(), ..options() };
            assert_eq!(url.check(), Err(A2aError::Text("url")), "{text:?}");
        }
        for (text, is_semantic) in [
            ("0.0.0", true),
            ("10.20.30", true),
            ("1.0.0-alpha.1-x", true),
            ("1.0.0+21.af", true),
            ("1.0.0-rc.1+build-7", true),
            ("1", false),
            ("1.0", false),
            ("1.0.0.0", false),
            ("v1.0.0", false),
            ("1.01.0", false),
            ("1..0", false),
            ("1.0.0-", false),
            ("1.0.0-a..b", false),
            ("1.0.0+", false),
            ("1.0.0 beta", false),
        ] {
            let version = A2aEdgeConfig { agent_version: text.to_owned(), ..options() };
            let expected = if is_semantic { Ok(()) } else { Err(A2aError::Version) };
            assert_eq!(version.check(), expected, "{text}");
        }
        let slash = A2aEdgeConfig { url: "http://localhost/".to_owned(), ..options() };
        assert_eq!(slash.check(), Err(A2aError::Slash));
    }
}
