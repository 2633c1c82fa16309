//! The identity of a policy: what stands in every receipt.

use chio_core::canonical;
use chio_core::hash::sha256_hex;
use serde_json::{Map, Value, json};

use chio_yaml::Node;

/// Members that say nothing about any call.
const NOT_HASHED: &[&str] = &["name", "description", "extends", "merge_strategy"];

/// SHA-256, in hex, of an effective document and of the files that belong to it.
///
/// Documents that differ in nothing but comments, layout, or the order of members have the same
/// hash; so have one that extends another and one in which all of it is written out.
pub fn hash(root: &Node, extra: &[(&str, &[u8])]) -> String {
    let mut document = root.to_value();
    if let Value::Object(members) = &mut document {
        members.retain(|name, _| !NOT_HASHED.contains(&name.as_str()));
    }
    let files: Map<String, Value> =
        extra.iter().map(|(name, bytes)| ((*name).to_owned(), sha256_hex(bytes).into())).collect();
    let whole = json!({ "document": document, "files": files });
    // A parsed document always has a canonical form: its numbers are finite, its depth is bounded.
    let bytes = canonical::to_vec(&whole).unwrap_or_else(|_| whole.to_string().into_bytes());
    sha256_hex(&bytes)
}
