//! The golden files in `spec/vectors/receipts`: one for each protocol, one line for each call.

use chio_core::hash::sha256_hex;
use chio_cross_protocol::DiscoveryProtocol;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One call and everything that came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// What the call is about.
    pub(crate) name: String,
    /// What the caller was given.
    pub(crate) outcome: Value,
    /// The answer as the selected protocol writes it; null when there is none.
    pub(crate) result: Value,
    /// What the call added to the log.
    pub(crate) log: Vec<Logged>,
}

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Logged {
    /// SHA-256 of its bytes.
    pub(crate) sha256: String,
    /// What the bytes say.
    pub(crate) content: Value,
}

impl Logged {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let content = serde_json::from_slice(bytes).unwrap();
        Self { sha256: sha256_hex(bytes), content }
    }
}

/// Reads the golden file of a protocol.
pub(crate) fn load(source: DiscoveryProtocol) -> Vec<Recorded> {
    read("spec/vectors/receipts", source)
}

/// Reads what version 0.1.0 wrote.
pub(crate) fn load_first(source: DiscoveryProtocol) -> Vec<Recorded> {
    read("spec/vectors/receipts/0.1.0", source)
}

fn read(folder: &str, source: DiscoveryProtocol) -> Vec<Recorded> {
    let file = format!("{folder}/{}.jsonl", source.name());
    let text = std::fs::read_to_string(chio_testkit::golden::root().join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
