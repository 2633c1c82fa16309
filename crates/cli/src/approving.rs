//! Signed answers to calls that wait for an approval.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use async_trait::async_trait;
use chio_core::crypto::{Keypair, Signature};
use chio_core::governance::{ApprovalDecision, ApprovalToken};
use chio_core::hash::sha256;
use chio_core::signed::Signed;
use chio_edge::UserApprovals;
use chio_kernel::ChioKernel;
use chio_kernel::store::{Answered, ApprovalRequest};
use chio_store::OpenStore;
use uuid::Uuid;

/// How long a kernel may take to see an answer that was just given.
pub(crate) const SOON: u64 = 300;
/// What the store's approver signs to make the key that answers for users of clients.
const DOMAIN: &[u8] = b"chio.client-user.v1\0";

/// What is answered, for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) decision: ApprovalDecision,
    pub(crate) valid_for: u64,
}

impl Answer {
    /// The signed answer to exactly this request.
    pub(crate) fn sign(
        self,
        request: &ApprovalRequest,
        now: u64,
        key: &Keypair,
    ) -> Result<ApprovalToken> {
        let token = ApprovalToken {
            id: format!("approval-{}", Uuid::now_v7()),
            approver: key.public_key().clone(),
            subject: request.subject.clone(),
            governed_intent_hash: request.intent_hash.clone(),
            request_id: request.request_id.clone(),
            threshold_proposal_hash: None,
            issued_at: now,
            expires_at: now.saturating_add(self.valid_for),
            decision: self.decision,
            algorithm: None,
            signature: Signature::blank(),
        };
        Ok(token.signed(key)?)
    }
}

/// The key that answers for users of clients, where the policy lets them. It is none of the
/// operator's own, so that receipts tell their answers apart.
pub(crate) async fn client_user(store: &OpenStore) -> Result<Option<Keypair>> {
    let seed = |approver: Keypair| {
        let signature = approver.sign(DOMAIN);
        sha256(signature.as_ed25519().map_or(&[][..], |bytes| &bytes[..]))
    };
    Ok(store.approver().await?.map(|approver| Keypair::from_seed(&seed(approver))))
}

/// Takes the word of a client's own user.
pub(crate) struct ByClientUser {
    pub(crate) kernel: ChioKernel,
    pub(crate) key: Arc<Keypair>,
    /// Whether the policy in force lets them answer.
    pub(crate) allowed: Arc<AtomicBool>,
}

#[async_trait]
impl UserApprovals for ByClientUser {
    fn may_ask(&self, _request: &ApprovalRequest) -> bool {
        self.allowed.load(Ordering::Relaxed)
    }

    async fn answer(&self, request: &ApprovalRequest, approved: bool) -> Result<(), String> {
        let decision = if approved { ApprovalDecision::Approved } else { ApprovalDecision::Denied };
        let now = self.kernel.clock().unix_seconds();
        let answer = Answer { decision, valid_for: SOON };
        let token = answer.sign(request, now, &self.key).map_err(|error| error.to_string())?;
        match self.kernel.store().answer(&request.id, &token, now).await {
            Ok(Answered::Recorded) => Ok(()),
            Ok(Answered::Over(_) | Answered::Unknown) => Err("it came too late".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}
