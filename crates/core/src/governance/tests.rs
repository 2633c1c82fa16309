//! The golden governance vectors, and what holds for every signed artifact among them.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::canonical;
use crate::crypto::{Keypair, Signature};
use crate::signed::Signed;
use crate::strict;

/// The part of the golden file at a JSON pointer.
pub(crate) fn golden(pointer: &str) -> Value {
    let text = include_str!("../../../../spec/vectors/golden/governance.json");
    let file: Value = serde_json::from_str(text).unwrap();
    file.pointer(pointer).unwrap_or_else(|| panic!("golden {pointer}")).clone()
}

/// The golden text at a JSON pointer.
pub(crate) fn text(pointer: &str) -> String {
    golden(pointer).as_str().unwrap_or_else(|| panic!("golden {pointer} is text")).to_owned()
}

/// The key of a golden seed: one byte, 32 times.
pub(crate) fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; 32])
}

/// Reads a signed golden artifact. It must keep its bytes, verify, come out the same when it is
/// signed again, ignore unknown members, and notice every change of one it has.
#[track_caller]
pub(crate) fn read_signed<T: Signed + DeserializeOwned>(name: &str, seed: u8) -> T {
    let wire = text(&format!("/{name}/wire_canonical"));
    let read = |text: &str| strict::from_slice::<T>(text.as_bytes());
    let artifact = read(&wire).unwrap();
    assert_eq!(canonical::to_string(&artifact).unwrap(), wire, "{name}: bytes");
    artifact.check_signature().unwrap();

    let mut unsigned = read(&wire).unwrap();
    unsigned.set_signature(Signature::blank());
    let again = unsigned.signed(&key(seed)).unwrap();
    assert_eq!(canonical::to_string(&again).unwrap(), wire, "{name}: signed again");

    let mut padded: Value = serde_json::from_str(&wire).unwrap();
    padded["never_heard_of"] = json!(1);
    read(&padded.to_string()).unwrap().check_signature().unwrap();

    for changed in changes(&wire) {
        let accepted = read(&changed.to_string()).is_ok_and(|it| it.check_signature().is_ok());
        assert!(!accepted, "{name}: {changed}");
    }
    artifact
}

/// The object with each of its members changed, one at a time.
fn changes(wire: &str) -> Vec<Value> {
    let object: Value = serde_json::from_str(wire).unwrap();
    let names: Vec<String> = object.as_object().unwrap().keys().cloned().collect();
    let change = |name: String| {
        let mut changed = object.clone();
        let member = &mut changed[name];
        *member = match member {
            Value::Number(number) => json!(number.as_u64().unwrap() + 1),
            Value::String(text) => json!(swap_last(text)),
            _ => Value::Null,
        };
        changed
    };
    names.into_iter().map(change).collect()
}

/// The text with another last character that is a hex digit.
fn swap_last(text: &str) -> String {
    let mut changed = text.to_owned();
    let last = changed.pop();
    changed.push(if last == Some('0') { '1' } else { '0' });
    changed
}
