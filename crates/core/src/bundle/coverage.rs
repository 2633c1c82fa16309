//! What a bundle has of each log: from where to where, with which gaps, of which time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::BundleEntry;

/// What a bundle has of one log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogCoverage {
    /// The first place.
    pub first: u64,
    /// The time of the earliest receipt, in Unix seconds.
    pub from: u64,
    /// Places between the first and the last that are not in the bundle, each range with its ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<[u64; 2]>,
    /// The last place.
    pub last: u64,
    /// The log.
    pub log_id: String,
    /// How many receipts there are.
    pub receipts: u64,
    /// The time of the latest receipt, in Unix seconds.
    pub until: u64,
}

impl LogCoverage {
    /// How many places between the first and the last are not in the bundle.
    pub fn missing(&self) -> u64 {
        let length = |[first, last]: &[u64; 2]| last.saturating_sub(*first).saturating_add(1);
        self.gaps.iter().map(length).fold(0, u64::saturating_add)
    }
}

/// What a bundle has, entry by entry.
#[derive(Debug, Clone, Default)]
pub struct Coverage(BTreeMap<String, Seen>);

/// What was seen of one log.
#[derive(Debug, Clone)]
struct Seen {
    /// The last place of each range, by its first.
    ranges: BTreeMap<u64, u64>,
    receipts: u64,
    times: (u64, u64),
}

impl Coverage {
    /// Adds an entry.
    pub fn note(&mut self, entry: &BundleEntry) {
        let time = entry.receipt.timestamp();
        if !self.0.contains_key(&entry.log_id) {
            let seen = Seen { ranges: BTreeMap::new(), receipts: 0, times: (time, time) };
            self.0.insert(entry.log_id.clone(), seen);
        }
        let Some(seen) = self.0.get_mut(&entry.log_id) else { return };
        seen.receipts += 1;
        seen.times = (seen.times.0.min(time), seen.times.1.max(time));
        seen.add(entry.seq);
    }

    /// What there is of each log.
    pub fn logs(self) -> Vec<LogCoverage> {
        self.0.into_iter().map(|(log_id, seen)| seen.coverage(log_id)).collect()
    }
}

impl Seen {
    fn add(&mut self, seq: u64) {
        let before = self.ranges.range(..=seq).next_back().map(|(first, last)| (*first, *last));
        let end = match self.ranges.remove(&seq.saturating_add(1)) {
            Some(end) => end,
            None => seq,
        };
        match before {
            Some((first, last)) if last.saturating_add(1) >= seq => {
                self.ranges.insert(first, last.max(end));
            }
            _ => drop(self.ranges.insert(seq, end)),
        }
    }

    fn coverage(self, log_id: String) -> LogCoverage {
        let ends = self.ranges.values().map(|last| last.saturating_add(1));
        let starts = self.ranges.keys().skip(1).map(|first| first.saturating_sub(1));
        LogCoverage {
            first: self.ranges.keys().next().copied().unwrap_or(0),
            from: self.times.0,
            gaps: ends.zip(starts).map(|(first, last)| [first, last]).collect(),
            last: self.ranges.values().next_back().copied().unwrap_or(0),
            log_id,
            receipts: self.receipts,
            until: self.times.1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Seen;

    #[test]
    fn places_in_any_order_come_to_the_same_ranges() {
        for places in [[1, 2, 4, 5, 9], [9, 5, 4, 2, 1], [4, 1, 9, 2, 5], [2, 5, 1, 9, 4]] {
            let mut seen = Seen { ranges: BTreeMap::new(), receipts: 5, times: (1, 2) };
            places.iter().for_each(|seq| seen.add(*seq));
            let coverage = seen.coverage("log".to_owned());
            assert_eq!((coverage.first, coverage.last), (1, 9), "{places:?}");
            assert_eq!(coverage.gaps, [[3, 3], [6, 8]], "{places:?}");
            assert_eq!(coverage.missing(), 4);
        }
    }
}
