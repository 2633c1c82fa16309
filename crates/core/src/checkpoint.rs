//! Checkpoints: signed statements about batches of the receipt log, each chained to the last.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use crate::canonical::{self, CanonicalError};
use crate::crypto::{Keypair, PublicKey, Signature};
use crate::hash::{Hash, sha256_hex};
use crate::merkle::{ConsistencyProof, Frontier, InclusionProof, Tree, leaf_hash};
use crate::signed::{ArtifactError, Signed, malformed, signed_by};

/// The schema that we issue.
pub const CHECKPOINT_SCHEMA: &str = "chio.checkpoint_statement.v2";
/// The schema before it, still accepted: without a chain root.
pub const CHECKPOINT_SCHEMA_V1: &str = "chio.checkpoint_statement.v1";

/// A signed checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelCheckpoint {
    /// What is stated.
    pub body: CheckpointBody,
    /// The kernel's signature over the body.
    pub signature: Signature,
}

signed_by!(KernelCheckpoint { body }, body.kernel_key, |checkpoint| checkpoint.body.check());

/// What a checkpoint states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointBody {
    /// [`CHECKPOINT_SCHEMA`] or [`CHECKPOINT_SCHEMA_V1`].
    pub schema: String,
    /// Its number, from 1.
    pub checkpoint_seq: u64,
    /// The first log entry of the batch, from 1.
    pub batch_start_seq: u64,
    /// The last log entry of the batch.
    pub batch_end_seq: u64,
    /// Leaves in this batch's tree.
    pub tree_size: u64,
    /// Root of this batch's tree.
    pub merkle_root: Hash,
    /// When it was signed, in Unix seconds.
    pub issued_at: u64,
    /// The key that signs.
    pub kernel_key: PublicKey,
    /// SHA-256 of the body before; none in the first.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    pub previous_checkpoint_sha256: Option<String>,
    /// Root of the tree over all checkpoints so far.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    pub chain_root: Option<Hash>,
}

/// Reads a member that may be missing but not `null`.
fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The entries that a checkpoint is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// The first entry, from 1.
    pub start_seq: u64,
    /// The last entry.
    pub end_seq: u64,
    /// Root over the leaves of these entries.
    pub merkle_root: Hash,
}

impl CheckpointBody {
    /// SHA-256 of the canonical body, as the next checkpoint carries it.
    ///
    /// # Errors
    /// When the body has no canonical form.
    pub fn digest(&self) -> Result<String, CanonicalError> {
        canonical::hash(self)
    }

    /// This checkpoint's leaf in the tree over all checkpoints.
    ///
    /// # Errors
    /// When the body has no canonical form.
    pub fn chain_leaf(&self) -> Result<Hash, CanonicalError> {
        let content = canonical::to_vec(&json!({
            "batch_end_seq": self.batch_end_seq,
            "batch_start_seq": self.batch_start_seq,
            "checkpoint_seq": self.checkpoint_seq,
            "merkle_root": self.merkle_root,
        }))?;
        Ok(leaf_hash(&content))
    }

    fn check(&self) -> Result<(), ArtifactError> {
        let is_v2 = match self.schema.as_str() {
            CHECKPOINT_SCHEMA => true,
            CHECKPOINT_SCHEMA_V1 => false,
            other => {
                let text = format!("expected schema `{CHECKPOINT_SCHEMA}`, found `{other}`");
                return Err(malformed(text));
            }
        };
        if self.checkpoint_seq == 0 || self.batch_start_seq == 0 || self.issued_at == 0 {
            return Err(malformed("expected sequence numbers and time above zero, found a zero"));
        }
        let size = self.batch_end_seq.checked_sub(self.batch_start_seq);
        if size.and_then(|size| size.checked_add(1)) != Some(self.tree_size) {
            return Err(malformed("expected a tree of as many leaves as the batch has entries"));
        }
        if !is_v2 && self.chain_root.is_some() {
            return Err(malformed("expected no chain root in a v1 checkpoint, found one"));
        }
        let is_lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_hash = |text: &str| text.len() == 64 && text.bytes().all(is_lower_hex);
        if !self.previous_checkpoint_sha256.as_deref().is_none_or(is_hash) {
            return Err(malformed("expected a hash of 64 lowercase hex digits as predecessor"));
        }
        if self.checkpoint_seq > 1 {
            return Ok(());
        }
        if self.previous_checkpoint_sha256.is_some() {
            return Err(malformed("expected no predecessor of the first checkpoint, found one"));
        }
        if is_v2 && self.chain_root != Some(self.chain_leaf()?) {
            return Err(malformed("expected the first checkpoint's own leaf as chain root"));
        }
        Ok(())
    }
}

impl KernelCheckpoint {
    /// Signs the checkpoint of `batch` that follows `previous`. `chain` holds the leaves of all
    /// checkpoints before and takes this one's.
    ///
    /// # Errors
    /// When the batch does not follow, or `key` is another than the one before.
    pub fn issue(
        previous: Option<&Self>,
        chain: &mut Frontier,
        batch: Batch,
        issued_at: u64,
        key: &Keypair,
    ) -> Result<Self, ArtifactError> {
        let tree_size = batch.end_seq.saturating_sub(batch.start_seq).saturating_add(1);
        let mut body = CheckpointBody {
            schema: CHECKPOINT_SCHEMA.to_owned(),
            checkpoint_seq: previous.map_or(1, |p| p.body.checkpoint_seq.saturating_add(1)),
            batch_start_seq: batch.start_seq,
            batch_end_seq: batch.end_seq,
            tree_size,
            merkle_root: batch.merkle_root,
            issued_at,
            kernel_key: key.public_key().clone(),
            previous_checkpoint_sha256: previous.map(|p| p.body.digest()).transpose()?,
            chain_root: None,
        };
        let mut grown = chain.clone();
        grown.push(body.chain_leaf()?);
        body.chain_root = grown.root();
        let checkpoint = Self { body, signature: Signature::blank() }.signed(key)?;
        if let Some(previous) = previous {
            checkpoint.check_follows(previous)?;
        }
        if grown.size() != checkpoint.body.checkpoint_seq {
            return Err(malformed("expected the chain to hold every checkpoint before this one"));
        }
        *chain = grown;
        Ok(checkpoint)
    }

    /// Checks that this is the checkpoint right after `previous`, by the same kernel.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_follows(&self, previous: &Self) -> Result<(), ArtifactError> {
        let (this, before) = (&self.body, &previous.body);
        let rules = [
            (before.checkpoint_seq.checked_add(1) == Some(this.checkpoint_seq), "the next number"),
            (before.batch_end_seq.checked_add(1) == Some(this.batch_start_seq), "the next entry"),
            (this.kernel_key == before.kernel_key, "the same kernel key"),
            (this.chain_root.is_some() || before.chain_root.is_none(), "a chain root, as before"),
            (
                this.previous_checkpoint_sha256.as_deref() == Some(&before.digest()?),
                "the digest of the checkpoint before",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            None => Ok(()),
            Some((_, expected)) => {
                let seq = this.checkpoint_seq;
                Err(malformed(format!("expected {expected} in checkpoint {seq}, found another")))
            }
        }
    }

    /// Checks that the chain root is that of all checkpoints up to this one. `chain` holds the
    /// leaves of those before and takes this one's.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_chain_root(&self, chain: &mut Frontier) -> Result<(), ArtifactError> {
        chain.push(self.body.chain_leaf()?);
        if self.body.chain_root.is_none() || self.body.chain_root == chain.root() {
            return Ok(());
        }
        Err(malformed("expected the root over all checkpoints as chain root, found another"))
    }

    /// Whether the chain up to this checkpoint begins with the chain up to `earlier`. The sizes in
    /// the proof count only if they are the signed numbers of the two.
    #[must_use]
    pub fn extends(&self, earlier: &Self, proof: &ConsistencyProof) -> bool {
        let (this, before) = (&self.body, &earlier.body);
        let (Some(from), Some(to)) = (&before.chain_root, &this.chain_root) else { return false };
        this.kernel_key == before.kernel_key
            && proof.from_size == before.checkpoint_seq
            && proof.to_size == this.checkpoint_seq
            && proof.verify(from, to)
    }

    /// Whether the leaf with this content is entry `entry_seq` of this checkpoint's batch.
    #[must_use]
    pub fn includes(&self, entry_seq: u64, content: &[u8], proof: &InclusionProof) -> bool {
        let body = &self.body;
        proof.tree_size == body.tree_size
            && entry_seq.checked_sub(body.batch_start_seq) == Some(proof.leaf_index)
            && proof.verify(&leaf_hash(content), &body.merkle_root)
    }
}

/// An inclusion proof as exports carry it, with the names of what it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptInclusion {
    /// The checkpoint.
    pub checkpoint_seq: u64,
    /// The log entry, from 1.
    pub receipt_seq: u64,
    /// Its index in the checkpoint's batch, from 0.
    pub leaf_index: u64,
    /// Root of the batch's tree.
    pub merkle_root: Hash,
    /// The proof.
    pub proof: InclusionProof,
}

impl ReceiptInclusion {
    /// The proof that entry `receipt_seq` is in the batch of `checkpoint` with these leaves; none
    /// when it is not.
    pub fn build(checkpoint: &KernelCheckpoint, leaves: &[Hash], receipt_seq: u64) -> Option<Self> {
        Self::of(checkpoint, &Tree::new(leaves.to_vec()), receipt_seq)
    }

    /// As [`Self::build`], from the tree of the batch.
    pub fn of(checkpoint: &KernelCheckpoint, batch: &Tree, receipt_seq: u64) -> Option<Self> {
        let body = &checkpoint.body;
        let leaf_index = receipt_seq.checked_sub(body.batch_start_seq)?;
        let proof = batch.inclusion(usize::try_from(leaf_index).ok()?)?;
        let (checkpoint_seq, merkle_root) = (body.checkpoint_seq, body.merkle_root);
        Some(Self { checkpoint_seq, receipt_seq, leaf_index, merkle_root, proof })
    }

    /// Whether the leaf with this content is the entry that this names, under `checkpoint`.
    #[must_use]
    pub fn verify(&self, checkpoint: &KernelCheckpoint, content: &[u8]) -> bool {
        self.checkpoint_seq == checkpoint.body.checkpoint_seq
            && self.merkle_root == checkpoint.body.merkle_root
            && self.leaf_index == self.proof.leaf_index
            && checkpoint.includes(self.receipt_seq, content, &self.proof)
    }
}

/// The name of the log that a kernel writes: a hash of its key.
pub fn log_id(kernel_key: &PublicKey) -> String {
    let hash = match kernel_key.as_ed25519() {
        Some(bytes) => sha256_hex(bytes),
        None => sha256_hex(kernel_key.to_hex().as_bytes()),
    };
    format!("local-log-{hash}")
}

#[cfg(test)]
mod tests;
