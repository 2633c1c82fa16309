//! The protocols that a call passes through.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize, Serializer};

use crate::DiscoveryProtocol;

/// The most steps that a call takes: what the caller speaks, the target, the kernel.
const MAX_STEPS: usize = 3;

/// The protocols that a call passes through, the caller's first. Made for every candidate of every
/// call, and therefore without an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "Vec<DiscoveryProtocol>")]
pub struct ProtocolChain {
    steps: [DiscoveryProtocol; MAX_STEPS],
    len: usize,
}

impl ProtocolChain {
    /// The chain from a caller to a target. MCP and OpenAI shapes are made around a native call,
    /// and the published planner says so for these two alone.
    pub const fn to(source: DiscoveryProtocol, target: DiscoveryProtocol) -> Self {
        let len = match target {
            DiscoveryProtocol::Mcp | DiscoveryProtocol::OpenAi => 3,
            DiscoveryProtocol::Native
            | DiscoveryProtocol::Http
            | DiscoveryProtocol::A2a
            | DiscoveryProtocol::Acp => 2,
        };
        Self { steps: [source, target, DiscoveryProtocol::Native], len }
    }

    /// The steps in order.
    pub fn as_slice(&self) -> &[DiscoveryProtocol] {
        self.steps.get(..self.len).unwrap_or_default()
    }
}

impl Deref for ProtocolChain {
    type Target = [DiscoveryProtocol];

    fn deref(&self) -> &[DiscoveryProtocol] {
        self.as_slice()
    }
}

impl fmt::Debug for ProtocolChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl Serialize for ProtocolChain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_slice().serialize(serializer)
    }
}

impl TryFrom<Vec<DiscoveryProtocol>> for ProtocolChain {
    type Error = String;

    fn try_from(read: Vec<DiscoveryProtocol>) -> Result<Self, String> {
        let mut steps = [DiscoveryProtocol::Native; MAX_STEPS];
        let len = read.len();
        let places = steps.get_mut(..len);
        let places =
            places.ok_or(format!("expected at most {MAX_STEPS} protocols, found {len}"))?;
        places.copy_from_slice(&read);
        Ok(Self { steps, len })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // covers: CROSS-045
    #[test]
    fn a_chain_begins_with_the_source_and_is_written_as_a_list() {
        for source in DiscoveryProtocol::ALL {
            for (target, rest) in [
                ("native", json!(["native"])),
                ("http", json!(["http"])),
                ("mcp", json!(["mcp", "native"])),
                ("a2a", json!(["a2a"])),
                ("acp", json!(["acp"])),
                ("open_ai", json!(["open_ai", "native"])),
            ] {
                let mut expected = vec![json!(source)];
                expected.extend(rest.as_array().unwrap().iter().cloned());
                let chain = ProtocolChain::to(source, target.parse().unwrap());
                assert_eq!(json!(chain), json!(expected));
                let read = serde_json::from_value::<ProtocolChain>(json!(expected)).unwrap();
                assert_eq!(read.as_slice(), chain.as_slice());
            }
        }
    }

    #[test]
    fn a_chain_that_is_too_long_is_refused() {
        let four = json!(["a2a", "mcp", "native", "native"]);
        let error = serde_json::from_value::<ProtocolChain>(four).unwrap_err().to_string();
        assert!(error.contains("at most 3 protocols"), "{error}");
        assert!(serde_json::from_value::<ProtocolChain>(json!([])).unwrap().is_empty());
    }
}
