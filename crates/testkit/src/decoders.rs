//! Every decoder of untrusted bytes, as a function that must survive anything.
//!
//! A new decoder is one line in [`DECODERS`]; the smoke run, the long run and their seeds read
//! the list.

use chio_core::capability::{CapabilityToken, Patterns};
use chio_core::crypto::{PublicKey, Signature};
use chio_core::frame::{self, Decoder};
use chio_core::hash::Hash;
use chio_core::manifest::SignedManifest;
use chio_core::message::{AgentMessage, KernelMessage, ReceivedMessage, TokenCache};
use chio_core::receipt::ChioReceipt;
use chio_core::{canonical, strict};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::golden;

/// A decoder, its seeds, and what must hold for any input.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Feeds it one input; panics when a property is broken.
    pub run: fn(&[u8]),
    /// Inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every decoder.
pub const DECODERS: &[Target] = &[
    Target { name: "frame", run: frame, seeds: frame_seeds },
    Target { name: "canonical", run: canonical_json, seeds: json_seeds },
    Target { name: "strict", run: strict_json, seeds: json_seeds },
    Target { name: "reading", run: reading, seeds: reading_seeds },
    Target { name: "key", run: key_text, seeds: key_seeds },
    Target { name: "token", run: token, seeds: token_seeds },
    Target { name: "receipt", run: receipt, seeds: receipt_seeds },
    Target { name: "message", run: message, seeds: message_seeds },
    Target { name: "manifest", run: manifest, seeds: manifest_seeds },
    #[cfg(feature = "policy")]
    Target { name: "judging", run: crate::judging::run, seeds: crate::judging::seeds },
];

/// A stream gives the same payloads however it is cut, and each one encodes to what was read.
fn frame(input: &[u8]) {
    let whole = payloads(std::iter::once(input));
    let bytewise = payloads(input.chunks(1));
    assert_eq!(whole, bytewise, "the same payloads however the stream is cut");
    let encoded: Vec<u8> = whole
        .iter()
        .flat_map(|p| frame::encode_payload(p).expect("a decoded payload fits"))
        .collect();
    assert!(input.starts_with(&encoded), "payloads encode to what was read");
}

fn payloads<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::default();
    let mut found = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        loop {
            match decoder.next_payload() {
                Ok(Some(payload)) => found.push(payload.to_vec()),
                Ok(None) => break,
                Err(_) => return found,
            }
        }
    }
    // Whether the end is clean or not, finding out must not fail.
    let _ = decoder.finish();
    found
}

/// Canonical form is a fixed point, and says the same as what was read.
fn canonical_json(input: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(input) else { return };
    let Ok(bytes) = canonical::to_vec(&value) else { return };
    let again: Value = serde_json::from_slice(&bytes).expect("canonical form is JSON");
    assert_eq!(canonical::to_vec(&again).expect("it was canonical before"), bytes, "a fixed point");
}

/// What the strict reader accepts, the lenient one reads as the same value.
fn strict_json(input: &[u8]) {
    if let Ok(bytes) = strict::canonicalize(input) {
        assert!(strict::check(&bytes).is_ok(), "canonical form is strict");
    }
    let Ok(value) = strict::from_slice::<Value>(input) else { return };
    assert_eq!(value, serde_json::from_slice::<Value>(input).expect("strict text is JSON"));
}

/// Reading is bounded: whatever is read has at most so many values, and takes no more memory than was
/// told before it was read; a stream keeps no more bytes than have arrived.
fn reading(input: &[u8]) {
    if let Ok(value) = strict::from_slice::<Value>(input) {
        assert!(nodes(&value) <= strict::MAX_NODES, "at most so many values and names");
        assert!(tree_bytes(&value) <= strict::tree_size(input), "no more memory than was told");
    }
    let (mut decoder, mut given) = (Decoder::default(), 0);
    for piece in input.chunks(7) {
        decoder.feed(piece);
        while let Ok(Some(payload)) = decoder.take_payload() {
            given += frame::PREFIX_LEN + payload.len();
        }
        if let Ok(Some(length)) = decoder.announced() {
            assert!(length <= frame::MAX_PAYLOAD, "a length that is waited for");
        }
    }
    assert!(given <= input.len(), "nothing is given twice");
}

/// How many values and names a value has.
fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(|it| 1 + nodes(it)).sum::<usize>(),
        _ => 1,
    }
}

/// How many bytes a value takes, as far as the standard library tells.
fn tree_bytes(value: &Value) -> usize {
    /// A map that keeps the order of its members, where a package of the build asks for it, is a
    /// table of at most twice as many; else a tree, whose nodes have places for eleven members and
    /// are at least half full but for the first.
    const IN_ORDER: bool = size_of::<Value>() > 32;
    const PLACE: usize = size_of::<String>() + size_of::<Value>();
    let own = match value {
        Value::String(text) => text.capacity(),
        Value::Array(items) => {
            let unused = (items.capacity() - items.len()) * size_of::<Value>();
            unused + items.iter().map(tree_bytes).sum::<usize>()
        }
        Value::Object(members) if !members.is_empty() => {
            let names: usize = members.keys().map(String::capacity).sum();
            let inner: usize = members.values().map(|it| tree_bytes(it) - size_of::<Value>()).sum();
            let own = if IN_ORDER {
                (2 * members.len()).max(3) * (PLACE + 17)
            } else {
                members.len().div_ceil(5) * (11 * PLACE + 16)
            };
            own + names + inner
        }
        _ => 0,
    };
    size_of::<Value>() + own
}

/// A text form that is read is written back in its normal form.
fn key_text(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(key) = PublicKey::from_hex(text) {
        assert_eq!(PublicKey::from_hex(&key.to_hex()).expect("the normal form"), key);
        assert!(key.check(b"", &Signature::blank()).is_err() || key.as_ed25519().is_some());
    }
    if let Ok(signature) = Signature::from_hex(text) {
        assert_eq!(Signature::from_hex(&signature.to_hex()).expect("the normal form"), signature);
    }
    if let Ok(hash) = Hash::from_hex(text) {
        assert_eq!(Hash::from_hex(&hash.to_string()).expect("the normal form"), hash);
    }
}

/// Reads a `T`, and checks that it survives being written: bytes that are signed do not drift.
///
/// The bytes are compared, not the values: a whole double above 2^53 is read back as an integer of
/// the same digits.
fn round_trip<T: DeserializeOwned + Serialize>(input: &[u8]) -> Option<T> {
    let value: T = strict::from_slice(input).ok()?;
    let bytes = canonical::to_vec(&value).ok()?;
    let again: T = strict::from_slice(&bytes).expect("what we write, we read");
    let rewritten = canonical::to_vec(&again).expect("it was canonical before");
    assert_eq!(rewritten, bytes, "writing and reading changes nothing");
    Some(value)
}

fn token(input: &[u8]) {
    if let Some(token) = round_trip::<CapabilityToken>(input) {
        let _ = token.check_token_signature();
        let _ = token.check_chain(Some(8));
        let _ = token.unsupported_profile();
        assert!(token.scope.is_subset_of(&token.scope), "a scope is within itself");
    }
}

fn receipt(input: &[u8]) {
    if let Some(receipt) = round_trip::<ChioReceipt>(input) {
        assert_eq!(receipt.examine().is_valid(), receipt.verify().is_ok());
    }
}

fn message(input: &[u8]) {
    let (agent, kernel) = (AgentMessage::decode(input), KernelMessage::decode(input));
    // However it is read, it is the same message, also when its token came before.
    let mut tokens = TokenCache::default();
    for _ in 0..2 {
        let arrived = ReceivedMessage::decode(input, &mut tokens);
        let same = match (&agent, &arrived) {
            (Ok(AgentMessage::ToolCallRequest(sent)), Ok(ReceivedMessage::Call(arrived))) => {
                *arrived.capability_token == sent.capability_token
                    && (&arrived.id, &arrived.params) == (&sent.id, &sent.params)
            }
            (Ok(AgentMessage::ListCapabilities), Ok(ReceivedMessage::ListCapabilities))
            | (Ok(AgentMessage::Heartbeat), Ok(ReceivedMessage::Heartbeat))
            | (Err(_), Err(_)) => true,
            // Only its token could not be read.
            (Err(_), Ok(ReceivedMessage::Call(arrived))) => {
                arrived.capability_token.problem().is_some()
            }
            _ => false,
        };
        assert!(same, "{agent:?} arrives as {arrived:?}");
    }
    assert_eq!(agent.ok(), strict::object_from_slice(input).ok());
    assert_eq!(kernel.ok(), strict::object_from_slice(input).ok());
    if let Some(AgentMessage::ToolCallRequest(request)) = round_trip::<AgentMessage>(input) {
        let _ = request.check_approvals();
        for grant in &request.capability_token.scope.grants {
            for constraint in &grant.constraints {
                let _ = constraint.matches(&request.params, None, &Patterns::default());
            }
        }
    }
    let _ = round_trip::<KernelMessage>(input);
}

fn manifest(input: &[u8]) {
    if let Some(manifest) = round_trip::<SignedManifest>(input) {
        let _ = manifest.verify(None);
    }
}

/// The text of one member of each entry of a golden file that has it.
fn texts(file: &str, member: &str) -> Vec<Vec<u8>> {
    let golden = golden::load(file);
    let entries: Vec<&Value> = match &golden {
        Value::Array(entries) => entries.iter().collect(),
        Value::Object(entries) => entries.values().collect(),
        _ => Vec::new(),
    };
    let texts = entries.into_iter().filter_map(|entry| entry.get(member)?.as_str());
    texts.map(|text| text.as_bytes().to_vec()).collect()
}

fn frame_seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<_> = texts("messages", "canonical")
        .iter()
        .filter_map(|t| frame::encode_payload(t).ok())
        .collect();
    seeds.push(seeds.concat());
    seeds.push(vec![0x01, 0x00, 0x00, 0x01]);
    seeds.push(vec![0xFF; 8]);
    seeds
}

fn json_seeds() -> Vec<Vec<u8>> {
    let golden = golden::load("canonical");
    let cases = golden.get("cases").and_then(Value::as_array).cloned().unwrap_or_default();
    let inputs = cases.iter().filter_map(|case| case.get("input_json")?.as_str());
    inputs.map(|text| text.as_bytes().to_vec()).chain(texts("messages", "canonical")).collect()
}

fn reading_seeds() -> Vec<Vec<u8>> {
    let dense = ["[0],", "{\"\":0},", "{},", "0,", "\"\","].map(|text| {
        let many = format!("[{}0]", text.repeat(200));
        many.into_bytes()
    });
    json_seeds().into_iter().chain(frame_seeds()).chain(dense).collect()
}

fn key_seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts("keys", "public_key");
    seeds.extend(texts("keys", "signature_of_ascii_chio"));
    seeds.push(format!("p256:04{}", "ab".repeat(64)).into_bytes());
    seeds.push(format!("p384:04{}", "CD".repeat(96)).into_bytes());
    let pq = "00".repeat(1952);
    seeds.push(format!("hybrid:{}:{pq}:ed25519+mldsa65", "ab".repeat(32)).into_bytes());
    seeds
}

fn token_seeds() -> Vec<Vec<u8>> {
    texts("capability", "wire_canonical")
}

fn receipt_seeds() -> Vec<Vec<u8>> {
    texts("receipt", "wire_canonical")
}

fn message_seeds() -> Vec<Vec<u8>> {
    texts("messages", "canonical")
}

fn manifest_seeds() -> Vec<Vec<u8>> {
    let signed = crate::generate::sample_manifest().signed(&crate::key(5));
    let bytes = signed.ok().and_then(|manifest| canonical::to_vec(&manifest).ok());
    bytes.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::generate;

    proptest! {
        #[test]
        fn reading_is_bounded_for_any_value(value in generate::json(), count in 1_usize..200) {
            let many = Value::Array(vec![value; count]);
            reading(many.to_string().as_bytes());
            reading(&serde_json::to_vec_pretty(&many).expect("JSON"));
        }

        #[test]
        fn reading_is_bounded_for_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            reading(&bytes);
        }

        #[test]
        fn reading_is_bounded_for_any_dense_text(
            parts in proptest::collection::vec(prop_oneof![
                Just("[0],"), Just("{\"\":0},"), Just("{},"), Just("[],"), Just("\"\","),
                Just("{\"a\":{\"b\":[]}},"), Just("0,"),
            ], 0..400),
        ) {
            reading(format!("[{}0]", parts.concat()).as_bytes());
        }
    }

    #[test]
    fn the_seeds_of_reading_hold() {
        reading_seeds().iter().for_each(|seed| reading(seed));
    }
}
