//! `--shard K/N`: which part of a long run this machine does.

use std::str::FromStr;

use anyhow::Result;

use crate::Usage;

/// The `K`th of `N` shards, from 0. The same numbers name the same work on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    number: usize,
    of: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Self { number: 0, of: 1 }
    }
}

impl Shard {
    /// Whether the unit of work with this number belongs to it.
    pub(crate) const fn has(self, unit: usize) -> bool {
        unit % self.of == self.number
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers = text.split_once('/').and_then(|(number, of)| {
            let shard = Self { number: number.parse().ok()?, of: of.parse().ok()? };
            (shard.number < shard.of).then_some(shard)
        });
        numbers.ok_or_else(|| {
            Usage(format!("expected `--shard K/N` with K from 0 to N-1, found `{text}`")).into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Shard;

    #[test]
    fn each_unit_belongs_to_exactly_one_shard() {
        let shards: Vec<Shard> = ["0/3", "1/3", "2/3"].map(|it| it.parse().unwrap()).to_vec();
        for unit in 0..100 {
            assert_eq!(shards.iter().filter(|shard| shard.has(unit)).count(), 1);
            assert!(Shard::default().has(unit));
        }
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        for text in ["", "1", "1/1", "3/2", "-1/2", "a/b", "0/0"] {
            let message = text.parse::<Shard>().unwrap_err().to_string();
            assert!(message.contains(&format!("`{text}`")), "{message}");
        }
    }
}
