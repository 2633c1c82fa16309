//! The protocols that agents and tools speak.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A protocol by which a tool can be found and called.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::Display, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum DiscoveryProtocol {
    /// Chio's own frames, or a call within the process.
    #[default]
    Native,
    /// Plain HTTP.
    Http,
    /// Model Context Protocol.
    Mcp,
    /// Agent2Agent.
    A2a,
    /// Agent Client Protocol.
    Acp,
    /// Function calls as OpenAI writes them.
    OpenAi,
}

impl DiscoveryProtocol {
    /// Every protocol.
    pub const ALL: [Self; 6] =
        [Self::Native, Self::Http, Self::Mcp, Self::A2a, Self::Acp, Self::OpenAi];

    /// The name that is written.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A name that is no protocol's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of native, http, mcp, a2a, acp, open_ai, found `{0}`")]
pub struct UnknownProtocol(String);

impl FromStr for DiscoveryProtocol {
    type Err = UnknownProtocol;

    /// Reads a name as people write it: blanks around it, any case, `openai` too.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.trim().to_ascii_lowercase();
        let name = if name == "openai" { "open_ai" } else { &name };
        let found = Self::ALL.into_iter().find(|protocol| protocol.name() == name);
        found.ok_or_else(|| UnknownProtocol(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::DiscoveryProtocol;

    #[test]
    fn names_are_read_leniently_and_written_one_way() {
        for protocol in DiscoveryProtocol::ALL {
            let written = serde_json::to_value(protocol).unwrap();
            assert_eq!(written, protocol.name());
            assert_eq!(format!(" {} ", protocol.name().to_uppercase()).parse(), Ok(protocol));
        }
        assert_eq!("OpenAI".parse(), Ok(DiscoveryProtocol::OpenAi));
        let error = "grpc".parse::<DiscoveryProtocol>().unwrap_err().to_string();
        assert!(error.contains("`grpc`") && error.contains("open_ai"), "{error}");
    }
}
