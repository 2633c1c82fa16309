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

/// A whole tree, with the root of every full subtree: a proof takes as many steps as it is high.
#[derive(Debug, Clone)]
pub struct Tree {
    /// The roots of the full subtrees of 1, 2, 4, … leaves.
    levels: Vec<Vec<Hash>>,
}

impl Tree {
    /// The tree over these leaf hashes.
    pub fn new(leaves: Vec<Hash>) -> Self {
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|below| below.len() > 1) {
            let (pairs, _) = below.as_chunks::<2>();
            let level = pairs.iter().map(|[left, right]| node_hash(left, right)).collect();
            levels.push(level);
        }
        Self { levels }
    }

    fn size(&self) -> usize {
        self.levels.first().map_or(0, Vec::len)
    }

    /// The proof for the leaf at `index`; none when there is no such leaf.
    pub fn inclusion(&self, index: usize) -> Option<InclusionProof> {
        let size = self.size();
        if index >= size {
            return None;
        }
        let (mut audit_path, mut within) = (Vec::new(), Part { start: 0, size });
        while within.size > 1 {
            let (left, right) = within.split();
            let (inside, sibling) = if index < right.start { (left, right) } else { (right, left) };
            audit_path.push(self.root_of(sibling)?);
            within = inside;
        }
        // From the leaf up.
        audit_path.reverse();
        let (tree_size, leaf_index) = (u64::try_from(size).ok()?, index.try_into().ok()?);
        Some(InclusionProof { tree_size, leaf_index, audit_path })
    }

    /// The proof that the first `from` leaves are the beginning; none when there are no such
    /// leaves.
    pub fn consistency(&self, from: usize) -> Option<ConsistencyProof> {
        let size = self.size();
        if from == 0 || from > size {
            return None;
        }
        let (mut path, mut within) = (Vec::new(), Part { start: 0, size });
        while from != within.start + within.size {
            let (left, right) = within.split();
            let (inside, sibling) = if from <= right.start { (left, right) } else { (right, left) };
            path.push(self.root_of(sibling)?);
            within = inside;
        }
        // A smaller tree that is a full subtree: the verifier knows its root.
        if within.start > 0 {
            path.push(self.root_of(within)?);
        }
        path.reverse();
        let (from_size, to_size) = (from.try_into().ok()?, size.try_into().ok()?);
        Some(ConsistencyProof { from_size, to_size, path })
    }

    fn root_of(&self, part: Part) -> Option<Hash> {
        if part.size.is_power_of_two() {
            let level = self.levels.get(usize::try_from(part.size.ilog2()).ok()?)?;
            return level.get(part.start / part.size).copied();
        }
        let (left, right) = part.split();
        Some(node_hash(&self.root_of(left)?, &self.root_of(right)?))
    }
}

/// A subtree over this many leaves from this one on, at least one.
#[derive(Debug, Clone, Copy)]
struct Part {
    start: usize,
    size: usize,
}

impl Part {
    const fn split(self) -> (Self, Self) {
        let size = split_point(self.size);
        let left = Self { start: self.start, size };
        (left, Self { start: self.start + size, size: self.size - size })
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
    /// The proof for the leaf at `index`; none when there is no such leaf. For several proofs from
    /// one tree, make the [`Tree`] once.
    pub fn build(leaves: &[Hash], index: usize) -> Option<Self> {
        Tree::new(leaves.to_vec()).inclusion(index)
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
    /// leaves. For several proofs from one tree, make the [`Tree`] once.
    pub fn build(leaves: &[Hash], from: usize) -> Option<Self> {
        Tree::new(leaves.to_vec()).consistency(from)
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

#[cfg(test)]
mod tests;
