//! Those whose word counts besides the issuer's: approvers, holders of keys, kernels elsewhere.

use chio_core::capability::{CapabilityToken, DpopProof, DpopTarget};
use chio_core::crypto::{Keypair, Signature};
use chio_core::governance::{ApprovalDecision, ApprovalToken, GovernedTransactionIntent};
use chio_core::signed::Signed;
use chio_kernel::store::ApprovalRequest;
use chio_testkit::key;
use serde_json::Value;

use super::tokens::agent;
use super::{NOW, SERVER, Setup};

/// Whom the kernel trusts to approve.
pub(crate) fn approver() -> Keypair {
    key(8)
}

impl Setup {
    /// With these as those who may approve.
    pub(crate) fn approvers(self, keys: &[Keypair]) -> Self {
        self.config(|it| {
            it.trusted_approvers = keys.iter().map(|key| key.public_key().clone()).collect();
        })
    }

    /// With the usual approver.
    pub(crate) fn approved(self) -> Self {
        self.approvers(&[approver()])
    }
}

/// The approver's yes to this request of the agent's with this intent, for ten minutes.
pub(crate) fn yes_to(request_id: &str, intent_hash: &str) -> ApprovalToken {
    let token = ApprovalToken {
        id: format!("yes-to-{request_id}"),
        approver: approver().public_key().clone(),
        subject: agent().public_key().clone(),
        governed_intent_hash: intent_hash.to_owned(),
        request_id: request_id.to_owned(),
        threshold_proposal_hash: None,
        issued_at: NOW,
        expires_at: NOW + 600,
        decision: ApprovalDecision::Approved,
        algorithm: None,
        signature: Signature::blank(),
    };
    token.signed(&approver()).unwrap()
}

/// The approver's yes to what the inbox asks.
pub(crate) fn yes(request: &ApprovalRequest) -> ApprovalToken {
    yes_to(&request.request_id, &request.intent_hash)
}

/// The same answer as this key gives it, but for a change.
pub(crate) fn changed(
    token: &ApprovalToken,
    by: &Keypair,
    change: impl FnOnce(&mut ApprovalToken),
) -> ApprovalToken {
    let mut changed = ApprovalToken { approver: by.public_key().clone(), ..token.clone() };
    change(&mut changed);
    changed.signed(by).unwrap()
}

/// The approver's no to what the inbox asks.
pub(crate) fn no(request: &ApprovalRequest) -> ApprovalToken {
    changed(&yes(request), &approver(), |token| token.decision = ApprovalDecision::Denied)
}

/// An intent to call a tool of the test server.
pub(crate) fn intent(tool: &str) -> GovernedTransactionIntent {
    GovernedTransactionIntent::new("intent-1", SERVER, tool, "to see what happens")
}

/// The agent's proof for a call of a tool of the test server.
pub(crate) fn proof(
    token: &CapabilityToken,
    tool_name: &str,
    arguments: &Value,
    nonce: &str,
    issued_at: u64,
) -> Box<DpopProof> {
    let target = DpopTarget { token, tool_server: SERVER, tool_name, arguments };
    Box::new(DpopProof::new(&target, nonce, issued_at, &agent()).unwrap())
}
