//! Making a receipt: nonce, id, signature.

use serde_json::{Map, Value};

use super::verify::UNIDENTIFIED;
use super::{
    BoundaryClass, ChioReceipt, Decision, ReceiptKind, RedactionMode, ToolCallAction, ToolOrigin,
    TrustLevel,
};
use crate::canonical;
use crate::crypto::{Keypair, PublicKey, Signature};
use crate::hash::sha256_hex;
use crate::signed::{ArtifactError, require_key};

/// Where the provisional id is kept, so that two receipts of equal content differ.
pub const NONCE_MEMBER: &str = "chio_receipt_signing_nonce";
/// Where metadata goes that is not an object.
pub const ORIGINAL_METADATA_MEMBER: &str = "original_metadata";

impl ChioReceipt {
    /// An unsigned receipt of a decision, as the kernel makes them.
    #[must_use]
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

/// The bytes that a receipt's signature is over: content and id, in one object.
///
/// Both parts are canonical already, and `body` sorts before `id`.
pub(super) fn wrap(content: &[u8], id: &str) -> Vec<u8> {
    const AROUND: usize = 20;
    let mut bytes = Vec::with_capacity(content.len() + id.len() + AROUND);
    bytes.extend_from_slice(b"{\"body\":");
    bytes.extend_from_slice(content);
    bytes.extend_from_slice(b",\"id\":\"");
    bytes.extend_from_slice(id.as_bytes());
    bytes.extend_from_slice(b"\"}");
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
