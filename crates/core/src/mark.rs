//! Marks: how far a kernel's log and its store had come, signed by the kernel and kept beside its key.
//!
//! Who can write a store and has no key can take its end away, or put an older copy in its place.
//! What is left is sound by itself; only a mark that is kept elsewhere tells that there was more.

use serde::{Deserialize, Serialize};

use crate::canonical::CanonicalError;
use crate::checkpoint::KernelCheckpoint;
use crate::crypto::{Keypair, PublicKey, Signature};
use crate::signed::{ArtifactError, Signed, malformed, signed_by};

/// The schema that every mark carries.
pub const MARK_SCHEMA: &str = "chio.store_mark.v1";

/// How far a kernel's log and its store had come. All of it was durable when the mark was signed,
/// so the store may be ahead of a mark and is never behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The last checkpoint of the kernel's log; none before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<MarkedCheckpoint>,
    /// The kernel, and with it the log.
    pub kernel_key: PublicKey,
    /// [`MARK_SCHEMA`].
    pub schema: String,
    /// The kernel's signature.
    pub signature: Signature,
    /// The numbers of the whole store.
    pub store: StoreNumbers,
    /// The store.
    pub store_id: String,
}

signed_by!(Mark, kernel_key, |mark| mark.check());

/// A checkpoint, by what tells it from every other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarkedCheckpoint {
    /// Its number, from 1.
    pub checkpoint_seq: u64,
    /// How many entries of the log are under it and those before it.
    pub entries: u64,
    /// The digest of its body.
    pub sha256: String,
}

impl MarkedCheckpoint {
    /// A checkpoint as marks name it.
    ///
    /// # Errors
    /// When it has no canonical form.
    pub fn of(checkpoint: &KernelCheckpoint) -> Result<Self, CanonicalError> {
        let body = &checkpoint.body;
        let (checkpoint_seq, entries) = (body.checkpoint_seq, body.batch_end_seq);
        Ok(Self { checkpoint_seq, entries, sha256: body.digest()? })
    }
}

/// Numbers of a store that only ever grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreNumbers {
    /// How often a budget was debited, whatever was given back later.
    pub debits: u64,
    /// The epoch of revocations.
    pub epoch: u64,
    /// How many tokens are revoked.
    pub revoked: u64,
}

impl StoreNumbers {
    /// The higher of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            debits: self.debits.max(other.debits),
            epoch: self.epoch.max(other.epoch),
            revoked: self.revoked.max(other.revoked),
        }
    }
}

impl Mark {
    /// Signs a mark.
    ///
    /// # Errors
    /// When the checkpoint or the mark has no canonical form.
    pub fn issue(
        key: &Keypair,
        store_id: impl Into<String>,
        checkpoint: Option<&KernelCheckpoint>,
        store: StoreNumbers,
    ) -> Result<Self, ArtifactError> {
        let mark = Self {
            checkpoint: checkpoint.map(MarkedCheckpoint::of).transpose()?,
            kernel_key: key.public_key().clone(),
            schema: MARK_SCHEMA.to_owned(),
            signature: Signature::blank(),
            store,
            store_id: store_id.into(),
        };
        mark.signed(key)
    }

    fn check(&self) -> Result<(), ArtifactError> {
        if self.schema == MARK_SCHEMA {
            return Ok(());
        }
        let found = &self.schema;
        Err(malformed(format!("expected `{MARK_SCHEMA}`, found `{found}`")))
    }
}
