//! Trees and proofs, held against another implementation and against the recursion of RFC 6962.

use ct_merkle::digest::{FixedOutput, HashMarker, Output, OutputSizeUser, Update, typenum};
use ct_merkle::mem_backed_tree::MemoryBackedTree;
use serde_json::json;

use super::*;
use crate::hash::sha256;

/// SHA-256, as the other implementation wants it.
#[derive(Clone, Default)]
struct Sha256(Vec<u8>);

impl Update for Sha256 {
    fn update(&mut self, data: &[u8]) {
        self.0.extend_from_slice(data);
    }
}

impl OutputSizeUser for Sha256 {
    type OutputSize = typenum::U32;
}

impl FixedOutput for Sha256 {
    fn finalize_into(self, out: &mut Output<Self>) {
        out.copy_from_slice(&sha256(&self.0));
    }
}

impl HashMarker for Sha256 {}

type Other = MemoryBackedTree<Sha256, Vec<u8>>;

fn contents(count: u64) -> Vec<Vec<u8>> {
    (0..count).map(|n| format!("entry {n}").into_bytes()).collect()
}

fn leaves(count: u64) -> Vec<Hash> {
    contents(count).iter().map(|content| leaf_hash(content)).collect()
}

fn other(count: u64) -> Other {
    let mut tree = Other::new();
    contents(count).into_iter().for_each(|content| tree.push(content));
    tree
}

fn hashes(bytes: &[u8]) -> Vec<Hash> {
    bytes.chunks(32).map(|hash| Hash::new(hash.try_into().unwrap())).collect()
}

/// MTH of RFC 6962, word by word.
fn recursive(leaves: &[Hash]) -> Hash {
    if let [leaf] = leaves {
        return *leaf;
    }
    let mut split = 1;
    while split * 2 < leaves.len() {
        split *= 2;
    }
    let (left, right) = leaves.split_at(split);
    node_hash(&recursive(left), &recursive(right))
}

#[test]
fn leaves_and_nodes_have_different_prefixes() {
    let (a, b) = (leaf_hash(b"a"), leaf_hash(b""));
    assert_eq!(a.as_bytes(), &sha256(b"\x00a"));
    assert_eq!(b.as_bytes(), &sha256(b"\x00"));
    let node = [&b"\x01"[..], a.as_bytes(), b.as_bytes()].concat();
    assert_eq!(node_hash(&a, &b).as_bytes(), &sha256(&node));
    assert_ne!(node_hash(&a, &b), node_hash(&b, &a));
    // The content of a node is not a leaf of the same hash.
    assert_ne!(leaf_hash(&node[1..]), node_hash(&a, &b));
}

#[test]
fn the_empty_tree_has_no_root_and_no_proofs() {
    assert_eq!(root(&[]), None);
    assert_eq!(Frontier::default().root(), None);
    assert_eq!(Frontier::default().size(), 0);
    assert_eq!(InclusionProof::build(&[], 0), None);
    assert_eq!(ConsistencyProof::build(&[], 0), None);
    let hash = leaf_hash(b"");
    let empty = InclusionProof { tree_size: 0, leaf_index: 0, audit_path: Vec::new() };
    assert!(!empty.verify(&hash, &hash));
    for to_size in [0, 1] {
        let empty = ConsistencyProof { from_size: 0, to_size, path: Vec::new() };
        assert!(!empty.verify(&hash, &hash));
    }
}

#[test]
fn roots_are_those_of_two_others() {
    for count in 1..=200 {
        let leaves = leaves(count);
        let expected = recursive(&leaves);
        assert_eq!(root(&leaves), Some(expected), "{count} leaves");
        assert_eq!(other(count).root().as_bytes()[..], expected.as_bytes()[..], "{count} leaves");
    }
}

#[test]
fn a_growing_tree_always_has_the_root_of_its_leaves() {
    let leaves = leaves(200);
    let mut frontier = Frontier::default();
    for count in 1..=200 {
        frontier.push(leaves[count - 1]);
        assert_eq!(frontier.root(), root(&leaves[..count]), "{count} leaves");
        assert_eq!(frontier.root(), Some(recursive(&leaves[..count])), "{count} leaves");
        assert_eq!(frontier.size(), u64::try_from(count).unwrap());
        assert_eq!(frontier.peaks.len(), usize::try_from(count.count_ones()).unwrap());
    }
}

#[test]
fn every_inclusion_proof_is_that_of_another_implementation() {
    for count in 1..=64 {
        let (leaves, other) = (leaves(count), other(count));
        let root = root(&leaves).unwrap();
        for (index, leaf) in leaves.iter().enumerate() {
            let proof = InclusionProof::build(&leaves, index).unwrap();
            assert_eq!(proof.audit_path, hashes(other.prove_inclusion(index).as_bytes()));
            assert_eq!(proof.tree_size, count);
            assert_eq!(proof.leaf_index, u64::try_from(index).unwrap());
            assert!(proof.verify(leaf, &root), "{index} of {count}");
        }
        assert_eq!(InclusionProof::build(&leaves, leaves.len()), None);
        assert_eq!(InclusionProof::build(&leaves, usize::MAX), None);
    }
}

#[test]
fn an_inclusion_proof_holds_for_its_leaf_place_and_root_only() {
    for count in 1..=33_u64 {
        let leaves = leaves(count);
        let root = root(&leaves).unwrap();
        for (index, leaf) in leaves.iter().enumerate() {
            let proof = InclusionProof::build(&leaves, index).unwrap();
            let case = format!("{index} of {count}");
            for (place, other) in leaves.iter().enumerate() {
                assert_eq!(proof.verify(other, &root), place == index, "{case}: leaf {place}");
            }
            for leaf_index in (0..count + 3).chain([u64::MAX]) {
                let moved = InclusionProof { leaf_index, ..proof.clone() };
                let same = leaf_index == proof.leaf_index;
                assert_eq!(moved.verify(leaf, &root), same, "{case}: at {leaf_index}");
            }
            assert!(!proof.verify(leaf, &leaf_hash(b"other")), "{case}: another root");
            for at in 0..=proof.audit_path.len() {
                let mut longer = proof.clone();
                longer.audit_path.insert(at, *leaf);
                assert!(!longer.verify(leaf, &root), "{case}: longer at {at}");
            }
            for at in 0..proof.audit_path.len() {
                let mut shorter = proof.clone();
                shorter.audit_path.remove(at);
                assert!(!shorter.verify(leaf, &root), "{case}: shorter at {at}");
                let mut changed = proof.clone();
                changed.audit_path[at] = leaf_hash(b"other");
                assert!(!changed.verify(leaf, &root), "{case}: changed at {at}");
            }
        }
    }
}

#[test]
fn an_inclusion_proof_is_for_a_tree_of_its_size() {
    // A path of one shape can belong to trees of several sizes; the place of the leaf tells them
    // apart as far as they differ. What never holds: too many or too few hashes.
    for count in 1..=33_u64 {
        let leaves = leaves(count);
        let root = root(&leaves).unwrap();
        for (index, leaf) in leaves.iter().enumerate() {
            let proof = InclusionProof::build(&leaves, index).unwrap();
            for tree_size in (0..count + 40).chain([u64::MAX, u64::MAX - 1]) {
                let resized = InclusionProof { tree_size, ..proof.clone() };
                if resized.verify(leaf, &root) {
                    let needed = path_len(tree_size, resized.leaf_index);
                    assert_eq!(needed, proof.audit_path.len(), "{index} of {tree_size}");
                }
            }
            let none = InclusionProof { tree_size: 0, ..proof.clone() };
            assert!(!none.verify(leaf, &root));
        }
    }
}

/// How many hashes lead from a leaf to the root.
fn path_len(size: u64, index: u64) -> usize {
    let (mut node, mut last, mut hashes) = (index, size - 1, 0);
    while last > 0 {
        if node & 1 == 1 || node < last {
            hashes += 1;
        }
        node >>= 1;
        last >>= 1;
    }
    hashes
}

#[test]
fn every_consistency_proof_is_that_of_another_implementation() {
    for to in 1..=64_u64 {
        let (leaves, other) = (leaves(to), other(to));
        let to_root = root(&leaves).unwrap();
        for from in 1..=to {
            let first = usize::try_from(from).unwrap();
            let from_root = root(&leaves[..first]).unwrap();
            let proof = ConsistencyProof::build(&leaves, first).unwrap();
            assert_eq!((proof.from_size, proof.to_size), (from, to));
            let added = usize::try_from(to - from).unwrap();
            if added > 0 {
                let expected = other.prove_consistency(added);
                assert_eq!(proof.path, hashes(expected.as_bytes()), "{from} to {to}");
            } else {
                assert!(proof.path.is_empty());
            }
            assert!(proof.verify(&from_root, &to_root), "{from} to {to}");
        }
        assert_eq!(ConsistencyProof::build(&leaves, 0), None);
        assert_eq!(ConsistencyProof::build(&leaves, leaves.len() + 1), None);
    }
}

#[test]
fn a_consistency_proof_holds_for_its_two_roots_only() {
    for to in 1..=24_u64 {
        let leaves = leaves(to);
        let to_root = root(&leaves).unwrap();
        let stranger = leaf_hash(b"other");
        for from in 1..=to {
            let first = usize::try_from(from).unwrap();
            let from_root = root(&leaves[..first]).unwrap();
            let proof = ConsistencyProof::build(&leaves, first).unwrap();
            let case = format!("{from} to {to}");
            assert!(!proof.verify(&stranger, &to_root), "{case}");
            assert!(!proof.verify(&from_root, &stranger), "{case}");
            assert_eq!(proof.verify(&to_root, &from_root), from == to, "{case} backwards");
            for at in 0..=proof.path.len() {
                let mut longer = proof.clone();
                longer.path.insert(at, from_root);
                assert!(!longer.verify(&from_root, &to_root), "{case}: longer at {at}");
            }
            for at in 0..proof.path.len() {
                let mut shorter = proof.clone();
                shorter.path.remove(at);
                assert!(!shorter.verify(&from_root, &to_root), "{case}: shorter at {at}");
                let mut changed = proof.clone();
                changed.path[at] = stranger;
                assert!(!changed.verify(&from_root, &to_root), "{case}: changed at {at}");
            }
            for from_size in (0..from).chain([to + 1, u64::MAX]) {
                let resized = ConsistencyProof { from_size, ..proof.clone() };
                assert!(!resized.verify(&from_root, &to_root), "{case}: from {from_size}");
            }
        }
    }
}

#[test]
fn a_history_that_was_rewritten_has_no_consistency_proof() {
    let old = leaves(10);
    let mut rewritten = leaves(15);
    rewritten[3] = leaf_hash(b"rewritten");
    let proof = ConsistencyProof::build(&rewritten, 10).unwrap();
    let (from, to) = (root(&old).unwrap(), root(&rewritten).unwrap());
    assert!(!proof.verify(&from, &to));
    assert!(proof.verify(&root(&rewritten[..10]).unwrap(), &to));
}

#[test]
fn proofs_are_written_with_prefixed_hashes_and_read_with_or_without() {
    let proof = InclusionProof::build(&leaves(2), 1).unwrap();
    let bare = const_hex::encode(leaves(2)[0].as_bytes());
    let mut value = json!({
        "tree_size": 2, "leaf_index": 1, "audit_path": [format!("0x{bare}")],
    });
    assert_eq!(serde_json::to_value(&proof).unwrap(), value);
    for text in [bare.clone(), bare.to_uppercase(), format!("0x{}", bare.to_uppercase())] {
        value["audit_path"] = json!([text]);
        assert_eq!(serde_json::from_value::<InclusionProof>(value.clone()).unwrap(), proof);
    }
    for refused in [json!(["0x"]), json!([bare.repeat(2)]), json!([1]), json!(null), json!("")] {
        value["audit_path"] = refused;
        assert!(serde_json::from_value::<InclusionProof>(value.clone()).is_err(), "{value}");
    }
    let single = InclusionProof::build(&leaves(1), 0).unwrap();
    let expected = json!({"tree_size": 1, "leaf_index": 0, "audit_path": []});
    assert_eq!(serde_json::to_value(&single).unwrap(), expected, "the path is always there");
    let mut missing = expected;
    missing.as_object_mut().unwrap().remove("audit_path");
    assert!(serde_json::from_value::<InclusionProof>(missing).is_err());
}
