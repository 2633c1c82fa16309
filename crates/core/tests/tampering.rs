//! Tampering: any change to a signed value, any dropped member, any flipped bit is refused.
#![cfg(test)]

use chio_core::capability::{CapabilityToken, DpopProof, DpopTarget};
use chio_core::checkpoint::{Batch, KernelCheckpoint, ReceiptInclusion};
use chio_core::crypto::Signature;
use chio_core::hash::Hash;
use chio_core::manifest::SignedManifest;
use chio_core::mark::{Mark, StoreNumbers};
use chio_core::merkle::{ConsistencyProof, Frontier, InclusionProof, leaf_hash, root};
use chio_core::receipt::{ChildReceipt, ChioReceipt};
use chio_core::signed::Signed;
use chio_testkit::generate;
use chio_testkit::key;
use chio_testkit::tamper::changes;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Every change to `artifact` either does not parse, is no change at all, or is not accepted.
#[track_caller]
fn refuses_every_change<T>(artifact: &T, accepts: impl Fn(&T) -> bool)
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    assert!(accepts(artifact), "the untouched artifact is accepted");
    let value = serde_json::to_value(artifact).unwrap();
    let mut refused = 0;
    for change in changes(&value) {
        let Ok(changed) = serde_json::from_value::<T>(change.value) else {
            refused += 1;
            continue;
        };
        // A member that is written but defaulted on input (`schema`) may be dropped.
        if changed == *artifact {
            continue;
        }
        assert!(!accepts(&changed), "accepted although {}", change.what);
        refused += 1;
    }
    assert!(refused > 5, "only {refused} changes were tried");
}

/// Every flipped bit of the signature is refused.
#[track_caller]
fn refuses_every_flipped_bit<T: Signed + Clone>(artifact: &T) {
    let bytes = *artifact.signature().as_ed25519().unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        let mut changed = artifact.clone();
        changed.set_signature(Signature::from_ed25519(flipped));
        assert!(changed.check_signature().is_err(), "accepted with bit {bit} flipped");
    }
}

fn token_holds(token: &CapabilityToken) -> bool {
    token.check_token_signature().is_ok() && token.check_chain(None).is_ok()
}

/// Leaves of made-up entries.
fn contents(count: u64) -> Vec<Vec<u8>> {
    (0..count).map(|n| format!("entry {n}").into_bytes()).collect()
}

fn checkpoints(sizes: &[u64]) -> Vec<KernelCheckpoint> {
    let mut chain = Frontier::default();
    let mut all: Vec<KernelCheckpoint> = Vec::new();
    let mut next = 1;
    for size in sizes {
        let leaves: Vec<Hash> = contents(*size).iter().map(|leaf| leaf_hash(leaf)).collect();
        let merkle_root = root(&leaves).unwrap();
        let batch = Batch { start_seq: next, end_seq: next + size - 1, merkle_root };
        next += size;
        let issued = KernelCheckpoint::issue(all.last(), &mut chain, batch, 1_700_000_000, &key(7));
        all.push(issued.unwrap());
    }
    all
}

proptest! {
    #![proptest_config(generate::cases(150))]

    #[test]
    fn tokens_and_their_chains(token in generate::token()) {
        refuses_every_change(&token, token_holds);
    }

    #[test]
    fn receipts(receipt in generate::receipt()) {
        refuses_every_change(&receipt, |receipt| receipt.verify().is_ok());
        refuses_every_change(&receipt, |receipt| receipt.examine().is_valid());
    }

    #[test]
    fn child_receipts(receipt in generate::child_receipt()) {
        refuses_every_change(&receipt, |r: &ChildReceipt| r.check_signature().is_ok());
    }

    #[test]
    fn manifests(manifest in generate::manifest()) {
        refuses_every_change(&manifest, |m: &SignedManifest| m.verify(None).is_ok());
    }

    #[test]
    fn checkpoints_in_their_chain(sizes in proptest::collection::vec(1u64..9, 2..6)) {
        let all = checkpoints(&sizes);
        let last = all.last().unwrap();
        let before = &all[all.len() - 2];
        refuses_every_change(last, |checkpoint| {
            let mut chain = Frontier::default();
            let mut earlier = all.iter().take(all.len() - 1);
            earlier.all(|before| before.check_chain_root(&mut chain).is_ok())
                && checkpoint.check_signature().is_ok()
                && checkpoint.check_follows(before).is_ok()
                && checkpoint.check_chain_root(&mut chain).is_ok()
        });
    }

    #[test]
    fn marks(sizes in proptest::collection::vec(1u64..9, 1..3), numbers in any::<[u64; 3]>()) {
        let all = checkpoints(&sizes);
        let [debits, epoch, revoked] = numbers.map(|number| number >> 11);
        let numbers = StoreNumbers { debits, epoch, revoked };
        let mark = Mark::issue(&key(7), "store-1", all.last(), numbers).unwrap();
        refuses_every_change(&mark, |mark: &Mark| mark.check_signature().is_ok());
        refuses_every_flipped_bit(&mark);
    }

    #[test]
    fn inclusion_proofs(size in 1u64..40, pick in any::<prop::sample::Index>(), first in 1u64..9) {
        let entries = contents(size);
        let leaves: Vec<Hash> = entries.iter().map(|leaf| leaf_hash(leaf)).collect();
        let index = pick.index(leaves.len());
        let proof = InclusionProof::build(&leaves, index).unwrap();
        let batch =
            Batch { start_seq: first, end_seq: first + size - 1, merkle_root: root(&leaves).unwrap() };
        let mut chain = Frontier::default();
        let checkpoint = KernelCheckpoint::issue(None, &mut chain, batch, 1, &key(7)).unwrap();
        let seq = first + u64::try_from(index).unwrap();
        let exported = ReceiptInclusion::build(&checkpoint, &leaves, seq).unwrap();
        refuses_every_change(&exported, |inclusion: &ReceiptInclusion| {
            inclusion.verify(&checkpoint, &entries[index])
        });
        let holds = |proof: &InclusionProof| checkpoint.includes(seq, &entries[index], proof);
        assert!(holds(&proof));
        let value = serde_json::to_value(&proof).unwrap();
        for change in changes(&value) {
            let changed = serde_json::from_value::<InclusionProof>(change.value);
            assert!(!changed.is_ok_and(|p| holds(&p)), "accepted although {}", change.what);
        }
        // Another entry, or another place, or another content.
        assert!(!checkpoint.includes(seq + 1, &entries[index], &proof));
        assert!(!checkpoint.includes(seq, b"entry", &proof));
        for bit in 0..proof.audit_path.len() * 256 {
            let mut changed = proof.clone();
            let mut bytes = *changed.audit_path[bit / 256].as_bytes();
            bytes[bit % 256 / 8] ^= 1 << (bit % 8);
            changed.audit_path[bit / 256] = Hash::new(bytes);
            assert!(!holds(&changed), "accepted with bit {bit} flipped");
        }
    }

    #[test]
    fn consistency_proofs(size in 2u64..40, pick in any::<prop::sample::Index>()) {
        let leaves: Vec<Hash> = contents(size).iter().map(|leaf| leaf_hash(leaf)).collect();
        let from = pick.index(leaves.len() - 1) + 1;
        let proof = ConsistencyProof::build(&leaves, from).unwrap();
        let (small, large) = (root(&leaves[..from]).unwrap(), root(&leaves).unwrap());
        assert!(proof.verify(&small, &large));
        assert!(!proof.verify(&large, &small));
        for n in 0..proof.path.len() {
            for bit in 0..256 {
                let mut changed = proof.clone();
                let mut bytes = *changed.path[n].as_bytes();
                bytes[bit / 8] ^= 1 << (bit % 8);
                changed.path[n] = Hash::new(bytes);
                assert!(!changed.verify(&small, &large), "accepted with bit {bit} flipped");
            }
            let mut shorter = proof.clone();
            shorter.path.remove(n);
            assert!(!shorter.verify(&small, &large));
            let mut longer = proof.clone();
            longer.path.insert(n, proof.path[n]);
            assert!(!longer.verify(&small, &large));
        }
        let mut rewritten = leaves.clone();
        rewritten[from - 1] = leaf_hash(b"rewritten");
        assert!(!proof.verify(&small, &root(&rewritten).unwrap()), "history was rewritten");
    }

    #[test]
    fn consistency_between_checkpoints(
        sizes in proptest::collection::vec(1u64..4, 2..12), pick in any::<prop::sample::Index>(),
    ) {
        let all = checkpoints(&sizes);
        let chain: Vec<Hash> = all.iter().map(|c| c.body.chain_leaf().unwrap()).collect();
        let from = pick.index(all.len());
        let (earlier, later) = (&all[from], all.last().unwrap());
        let proof = ConsistencyProof::build(&chain, from + 1).unwrap();
        assert!(later.extends(earlier, &proof));
        let value = serde_json::to_value(&proof).unwrap();
        for change in changes(&value) {
            let changed = serde_json::from_value::<ConsistencyProof>(change.value);
            let accepted = changed.is_ok_and(|proof| later.extends(earlier, &proof));
            assert!(!accepted, "accepted although {}", change.what);
        }
        for other in all.iter().filter(|other| *other != earlier) {
            assert!(!later.extends(other, &proof), "accepted for another checkpoint");
        }
    }

    #[test]
    fn proofs_of_possession(token in generate::token(), arguments in generate::json()) {
        let holder = key(u8::try_from(token.delegation_chain.len()).unwrap() + 2);
        let target = |arguments| {
            DpopTarget { token: &token, tool_server: "files", tool_name: "read", arguments }
        };
        let proof = DpopProof::new(&target(&arguments), "n-1", 1000, &holder).unwrap();
        refuses_every_change(&proof, |proof| proof.verify(&target(&arguments), 1000).is_ok());
        let other = serde_json::json!({"other": arguments});
        prop_assert!(proof.verify(&target(&other), 1000).is_err());
    }
}

proptest! {
    #![proptest_config(generate::cases(4))]

    #[test]
    fn every_bit_of_every_signature(
        token in generate::token(),
        child in generate::child_receipt(),
        manifest in generate::manifest(),
        receipt in generate::receipt(),
    ) {
        refuses_every_flipped_bit(&token);
        refuses_every_flipped_bit(&child);
        refuses_every_flipped_bit(&manifest);
        for link in &token.delegation_chain {
            refuses_every_flipped_bit(link);
        }
        let bytes = *receipt.signature.as_ed25519().unwrap();
        for bit in 0..512 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let signature = Signature::from_ed25519(flipped);
            let changed = ChioReceipt { signature, ..receipt.clone() };
            prop_assert!(changed.examine().signature.is_err(), "accepted with bit {} flipped", bit);
        }
    }
}
