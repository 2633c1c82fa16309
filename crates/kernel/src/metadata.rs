//! The metadata of a receipt in the making.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chio_core::canonical::Written;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Members of a receipt's metadata, in order. What was written before is copied.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metadata(BTreeMap<Cow<'static, str>, Member>);

#[derive(Debug, Clone)]
enum Member {
    Value(Value),
    Written(Written),
}

impl Metadata {
    /// The members of an object that was kept.
    pub(crate) fn of(kept: &Written) -> Self {
        let Value::Object(members) = kept.to_value() else { return Self::default() };
        let member = |(name, value)| (Cow::Owned(name), Member::Value(value));
        Self(members.into_iter().map(member).collect())
    }

    pub(crate) fn insert(&mut self, name: &'static str, value: Value) {
        self.0.insert(Cow::Borrowed(name), Member::Value(value));
    }

    pub(crate) fn insert_written(&mut self, name: &'static str, value: Written) {
        self.0.insert(Cow::Borrowed(name), Member::Written(value));
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        match self.0.get_mut(name) {
            Some(Member::Value(value)) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        match self.0.get(name) {
            Some(Member::Value(value)) => Some(value),
            _ => None,
        }
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.0)
    }
}

impl Serialize for Member {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Written(written) => written.serialize(serializer),
        }
    }
}
