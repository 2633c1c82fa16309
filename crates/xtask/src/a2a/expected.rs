//! What each client and each list of checks has to come to: `clients/a2a/expected.toml`.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::suites::Rig;
use crate::suites::receipts::Tally;

/// What one of them has to come to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    /// Its steps, in this order; each has to be well.
    pub(super) steps: Vec<String>,
    /// How many messages it says that it sent, if it says.
    pub(super) calls: Option<u64>,
    /// How many receipts are left, by `tool verdict`; not looked at when left out.
    receipts: Option<BTreeMap<String, usize>>,
}

impl Expected {
    /// What is written about a part.
    pub(super) fn of(rig: &Rig, part: &str) -> Result<Self> {
        let text = fs::read_to_string(rig.source("a2a/expected.toml"))?;
        let mut all: BTreeMap<String, Self> = toml::from_str(&text).context("expected.toml")?;
        all.remove(part).with_context(|| format!("`{part}` is not in expected.toml"))
    }

    /// The receipts that are left.
    pub(super) fn receipts(&self) -> Option<Tally> {
        let split = |(name, count): (&String, &usize)| {
            let (tool, verdict) = name.split_once(' ')?;
            Some(((tool.to_owned(), verdict.to_owned()), *count))
        };
        Some(self.receipts.as_ref()?.iter().filter_map(split).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::Expected;
    use crate::tree;

    #[test]
    fn every_list_is_readable_and_no_receipt_is_lost_in_reading() {
        let text = fs::read_to_string(tree::root().join("clients/a2a/expected.toml")).unwrap();
        let all: BTreeMap<String, Expected> = toml::from_str(&text).unwrap();
        assert!(all.len() > 5);
        for (part, expected) in &all {
            assert!(!expected.steps.is_empty(), "{part}");
            let read = expected.receipts().map(|tally| tally.len());
            assert_eq!(read, expected.receipts.as_ref().map(BTreeMap::len), "{part}");
        }
    }
}
