//! The Merkle tree of RFC 6962 and 9162: roots, inclusion and consistency proofs.
//!
//! Hashes of leaves and nodes have different prefixes, so that neither can pass for the other. A
//! tree of n leaves splits at the largest power of two below n; the empty tree has no root.

use serde::{Deserialize, Serialize};

use crate::hash::{Hash, sha256_parts};

const LEAF_PREFIX: &[u8] = &[0x00];
const NODE_PREFIX: &[u8] = &[0x01];

/// The hash of a leaf with this content.
pub fn leaf_hash(content: &[u8]) -> Hash {
    Hash::new(sha256_parts(&[LEAF_PREFIX, content]))
}

/// The hash of a node over these two.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Hash::new(sha256_parts(&[NODE_PREFIX, left.as_bytes(), right.as_bytes()]))
}

/// The root over these leaf hashes; none for an empty tree.
pub fn root(leaves: &[Hash]) -> Option<Hash> {
    let mut frontier = Frontier::default();
    leaves.iter().for_each(|leaf| frontier.push(*leaf));
    frontier.root()
}

/// A growing tree that remembers only what its next root needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontier {
    /// Roots of the full subtrees, largest first: one for each bit set in `size`.
    peaks: Vec<Hash>,
    size: u64,
}

impl Frontier {
    /// How many leaves were added.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf hash at the end.
    pub fn push(&mut self, leaf: Hash) {
        let mut hash = leaf;
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                hash = node_hash(&left, &hash);
            }
        }
        self.peaks.push(hash);
        self.size += 1;
    }

    /// The root over all leaves so far; none before the first.
    pub fn root(&self) -> Option<Hash> {
        let (last, rest) = self.peaks.split_last()?;
        Some(rest.iter().rev().fold(*last, |right, left| node_hash(left, &right)))
    }
}

/// Where a tree of this many leaves splits: the largest power of two below.
const fn split_point(leaves: usize) -> usize {
    leaves.next_power_of_two() / 2
}

/// A proof that a leaf is in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InclusionProof {
    /// How many leaves the tree has.
    pub tree_size: u64,
    /// The leaf's index, from 0.
    pub leaf_index: u64,
    /// Sibling hashes from the leaf to the root.
    pub audit_path: Vec<Hash>,
}

impl InclusionProof {
    /// The proof for the leaf at `index`; none when there is no such leaf.
    pub fn build(leaves: &[Hash], index: usize) -> Option<Self> {
        if index >= leaves.len() {
            return None;
        }
        let mut audit_path = Vec::new();
        collect_path(leaves, index, &mut audit_path);
        let (tree_size, leaf_index) = (u64::try_from(leaves.len()).ok()?, index.try_into().ok()?);
        Some(Self { tree_size, leaf_index, audit_path })
    }

    /// Whether `leaf` is in the tree with this root, at this index. Every hash of the path is
    /// used, and none is missing.
    #[must_use]
    pub fn verify(&self, leaf: &Hash, root: &Hash) -> bool {
        if self.leaf_index >= self.tree_size {
            return false;
        }
        let (mut node, mut last) = (self.leaf_index, self.tree_size - 1);
        let mut hash = *leaf;
        for sibling in &self.audit_path {
            if last == 0 {
                return false;
            }
            if node & 1 == 1 || node == last {
                hash = node_hash(sibling, &hash);
                skip_lonely(&mut node, &mut last);
            } else {
                hash = node_hash(&hash, sibling);
            }
            node >>= 1;
            last >>= 1;
        }
        last == 0 && hash == *root
    }
}

/// Goes up past levels where a node has no sibling and is carried up unchanged.
const fn skip_lonely(node: &mut u64, last: &mut u64) {
    while *node & 1 == 0 && *node != 0 {
        *node >>= 1;
        *last >>= 1;
    }
}

fn collect_path(leaves: &[Hash], index: usize, path: &mut Vec<Hash>) {
    if leaves.len() < 2 {
        return;
    }
    let (left, right) = leaves.split_at(split_point(leaves.len()));
    let (inside, sibling, index) = match index.checked_sub(left.len()) {
        None => (left, right, index),
        Some(index) => (right, left, index),
    };
    collect_path(inside, index, path);
    path.extend(root(sibling));
}

/// A proof that one tree is the beginning of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsistencyProof {
    /// Leaves in the smaller tree.
    pub from_size: u64,
    /// Leaves in the larger tree.
    pub to_size: u64,
    /// The hashes that lead to both roots.
    pub path: Vec<Hash>,
}

impl ConsistencyProof {
    /// The proof that the first `from` leaves are the beginning; none when there are no such
    /// leaves.
    pub fn build(leaves: &[Hash], from: usize) -> Option<Self> {
        if from == 0 || from > leaves.len() {
            return None;
        }
        let mut path = Vec::new();
        collect_consistency(leaves, from, true, &mut path);
        let (from_size, to_size) = (from.try_into().ok()?, leaves.len().try_into().ok()?);
        Some(Self { from_size, to_size, path })
    }

    /// Whether the tree with root `to` begins with the tree with root `from`.
    #[must_use]
    pub fn verify(&self, from: &Hash, to: &Hash) -> bool {
        if self.from_size == 0 || self.from_size > self.to_size {
            return false;
        }
        if self.from_size == self.to_size {
            return self.path.is_empty() && from == to;
        }
        let (mut node, mut last) = (self.from_size - 1, self.to_size - 1);
        while node & 1 == 1 {
            node >>= 1;
            last >>= 1;
        }
        let mut path = self.path.iter();
        // A smaller tree that is full is its own starting point.
        let start = if self.from_size.is_power_of_two() { Some(from) } else { path.next() };
        let Some(start) = start else { return false };
        let (mut smaller, mut larger) = (*start, *start);
        for sibling in path {
            if last == 0 {
                return false;
            }
            if node & 1 == 1 || node == last {
                smaller = node_hash(sibling, &smaller);
                larger = node_hash(sibling, &larger);
                skip_lonely(&mut node, &mut last);
            } else {
                larger = node_hash(&larger, sibling);
            }
            node >>= 1;
            last >>= 1;
        }
        last == 0 && smaller == *from && larger == *to
    }
}

/// `whole` says whether the smaller tree is still a full subtree at this level: then its hash
/// is known to the verifier and left out.
fn collect_consistency(leaves: &[Hash], from: usize, whole: bool, path: &mut Vec<Hash>) {
    if from == leaves.len() {
        if !whole {
            path.extend(root(leaves));
        }
        return;
    }
    let (left, right) = leaves.split_at(split_point(leaves.len()));
    match from.checked_sub(left.len()) {
        None | Some(0) => {
            collect_consistency(left, from, whole, path);
            path.extend(root(right));
        }
        Some(from) => {
            collect_consistency(right, from, false, path);
            path.extend(root(left));
        }
    }
}

#[cfg(test)]
mod tests;
