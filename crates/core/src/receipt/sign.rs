//! Making a receipt: nonce, id, signature.
//!
//! [`ChioReceipt::signed`] returns a typed receipt; [`ChioReceipt::sealed`] writes the same bytes
//! for a log, without a tree of the metadata and without writing anything twice.

use serde::Serialize;
use serde_json::{Map, Value};

use super::verify::UNIDENTIFIED;
use super::{
    BoundaryClass, ChioReceipt, Decision, ReceiptKind, RedactionMode, ToolCallAction, ToolOrigin,
    TrustLevel,
};
use crate::canonical;
use crate::crypto::{Keypair, PublicKey, Signature};
use crate::hash::sha256_hex;
use crate::signed::{ArtifactError, malformed, require_key};
use crate::strict::{self, StrictError};

/// The metadata member that holds the provisional id, so that two receipts of equal content differ.
pub const NONCE_MEMBER: &str = "chio_receipt_signing_nonce";
/// The member that holds metadata that is not an object.
pub const ORIGINAL_METADATA_MEMBER: &str = "original_metadata";

impl ChioReceipt {
    /// An unsigned receipt of a decision, as the kernel makes them.
    pub fn mediated(
        timestamp: u64,
        action: ToolCallAction,
        decision: Decision,
        content_hash: String,
        kernel_key: PublicKey,
    ) -> Self {
        Self {
            id: String::new(),
            timestamp,
            capability_id: String::new(),
            tool_server: String::new(),
            tool_name: String::new(),
            action,
            decision: Some(decision),
            receipt_kind: ReceiptKind::MediatedDecision,
            boundary_class: BoundaryClass::Prevent,
            observation_outcome: None,
            tool_origin: ToolOrigin::CallerExecuted,
            redaction_mode: RedactionMode::None,
            actor_chain: Vec::new(),
            content_hash,
            policy_hash: String::new(),
            evidence: Vec::new(),
            metadata: None,
            trust_level: TrustLevel::Mediated,
            tenant_id: None,
            bbs_projection_version: None,
            kernel_key,
            bbs_signature: None,
            algorithm: None,
            signature: Signature::blank(),
        }
    }

    /// Signs the receipt. A provisional id that is not blank becomes the signing nonce; the id
    /// becomes the hash of the content.
    ///
    /// # Errors
    /// When the receipt names another kernel key, is incoherent, or has no canonical form.
    pub fn signed(mut self, key: &Keypair) -> Result<Self, ArtifactError> {
        require_key(&self.kernel_key, key)?;
        self.check_coherence()?;
        let nonce = self.id.trim();
        if !nonce.is_empty() {
            self.metadata = Some(with_nonce(self.metadata.take(), nonce));
        }
        let content = canonical::to_vec_without(&self, UNIDENTIFIED)?;
        self.id = sha256_hex(&content);
        self.signature = key.sign(&wrap(&content, &self.id));
        Ok(self)
    }
}

/// Members that [`ChioReceipt::sealed`] inserts into the written text itself.
const INSERTED: &[&str] = &["algorithm", "bbs_signature", "id", "metadata", "signature"];

/// A signed receipt in its canonical form, as a log stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedReceipt {
    /// The receipt's id.
    pub id: String,
    /// The canonical form of the whole receipt.
    pub bytes: Vec<u8>,
}

impl SealedReceipt {
    /// Parses the receipt.
    ///
    /// # Errors
    /// When the bytes are not a receipt.
    pub fn open(&self) -> Result<ChioReceipt, StrictError> {
        strict::object_from_slice(&self.bytes)
    }
}

impl ChioReceipt {
    /// Signs the receipt with this metadata instead of its own. The metadata holds the signing
    /// nonce if there is to be one; the provisional id is ignored.
    ///
    /// # Errors
    /// As [`ChioReceipt::signed`].
    pub fn sealed<M: Serialize>(
        mut self,
        metadata: &M,
        key: &Keypair,
    ) -> Result<SealedReceipt, ArtifactError> {
        require_key(&self.kernel_key, key)?;
        self.check_coherence()?;
        self.metadata = Some(Value::Object(Map::new()));
        let (text, gaps) = canonical::to_vec_with_gaps(&self, INSERTED)?;
        let metadata = canonical::to_vec(metadata)?;
        let [id_at, metadata_at, signature_at] = *gaps else {
            return Err(malformed("expected a receipt without hints or projections, found some"));
        };
        let piece = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let member: &[u8] = b",\"metadata\":";
        let tail = [piece(metadata_at, signature_at), piece(signature_at, text.len())];
        let mut wrapped = Vec::with_capacity(text.len() + metadata.len() + 128);
        wrapped.extend_from_slice(BODY);
        for part in [piece(0, metadata_at), member, &metadata, tail[0], tail[1]] {
            wrapped.extend_from_slice(part);
        }
        let id = sha256_hex(wrapped.get(BODY.len()..).unwrap_or_default());
        close(&mut wrapped, &id);
        let signature = key.sign(&wrapped).to_hex();
        let mut bytes = Vec::with_capacity(wrapped.len() + 256);
        for part in [
            piece(0, id_at),
            b",\"id\":\"",
            id.as_bytes(),
            b"\"",
            piece(id_at, metadata_at),
            member,
            &metadata,
            tail[0],
            b",\"signature\":\"",
            signature.as_bytes(),
            b"\"",
            tail[1],
        ] {
            bytes.extend_from_slice(part);
        }
        Ok(SealedReceipt { id, bytes })
    }
}

/// What stands before the content where it is signed.
const BODY: &[u8] = b"{\"body\":";

/// Ends what is signed.
fn close(bytes: &mut Vec<u8>, id: &str) {
    bytes.extend_from_slice(b",\"id\":\"");
    bytes.extend_from_slice(id.as_bytes());
    bytes.extend_from_slice(b"\"}");
}

/// The bytes that a receipt's signature is over: content and id, in one object.
///
/// Both parts are canonical already, and `body` sorts before `id`.
pub(super) fn wrap(content: &[u8], id: &str) -> Vec<u8> {
    const AROUND: usize = 20;
    let mut bytes = Vec::with_capacity(content.len() + id.len() + AROUND);
    bytes.extend_from_slice(BODY);
    bytes.extend_from_slice(content);
    close(&mut bytes, id);
    bytes
}

fn with_nonce(metadata: Option<Value>, nonce: &str) -> Value {
    let mut members = match metadata {
        None => Map::new(),
        Some(Value::Object(members)) => members,
        Some(other) => Map::from_iter([(ORIGINAL_METADATA_MEMBER.to_owned(), other)]),
    };
    members.insert(NONCE_MEMBER.to_owned(), Value::String(nonce.to_owned()));
    Value::Object(members)
}
