//! The golden vectors in `spec/vectors/golden`.

use std::path::PathBuf;

use serde_json::Value;

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Reads `spec/vectors/golden/NAME.json`.
///
/// # Panics
/// When it is not there or not JSON.
#[must_use]
pub fn load(name: &str) -> Value {
    let path = root().join("spec/vectors/golden").join(name).with_extension("json");
    let text = std::fs::read(&path).expect("the golden file is readable");
    serde_json::from_slice(&text).expect("the golden file is JSON")
}
