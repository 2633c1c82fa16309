//! Tokens for tests.

use chio_core::capability::{
    CapabilityToken, Child, ChioScope, Delegation, Operation, ToolGrant, Validity, delegate,
};
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::signed::Signed;

/// Leave to call a tool of the demo server, or `SERVER/TOOL`, and to hand that on.
#[must_use]
pub fn grant(tool: &str) -> ToolGrant {
    let (server_id, tool_name) = tool.split_once('/').unwrap_or(("demo", tool));
    ToolGrant::new(server_id, tool_name, &[Operation::Invoke, Operation::Delegate])
}

/// A token with these grants for an hour from `now`.
#[must_use]
pub fn token(
    issuer: &Keypair,
    subject: &PublicKey,
    id: &str,
    grants: Vec<ToolGrant>,
    now: u64,
) -> CapabilityToken {
    let validity = Validity { issued_at: now, expires_at: now + 3600 };
    token_at(issuer, subject, id, grants, validity)
}

/// A token with these grants for this time.
#[must_use]
pub fn token_at(
    issuer: &Keypair,
    subject: &PublicKey,
    id: &str,
    grants: Vec<ToolGrant>,
    validity: Validity,
) -> CapabilityToken {
    let scope = ChioScope { grants, ..ChioScope::default() };
    let draft =
        CapabilityToken::draft(id, issuer.public_key().clone(), subject.clone(), scope, validity);
    draft.signed(issuer).expect("a token")
}

/// The token of `to`, to whom the holder of `parent` hands all of it on.
#[must_use]
pub fn child(
    issuer: &Keypair,
    parent: &CapabilityToken,
    holder: &Keypair,
    to: &PublicKey,
    id: &str,
) -> CapabilityToken {
    let mut nonce = [0; 16];
    nonce.iter_mut().zip(id.bytes()).for_each(|(byte, name)| *byte = name);
    let delegation = Delegation {
        delegatee: to.clone(),
        scope: parent.scope.clone(),
        expires_at: parent.expires_at,
        steps: Vec::new(),
        budget_share_bps: None,
        signed_at: parent.issued_at,
        nonce,
    };
    let receipt = delegate(parent, delegation, holder).expect("a delegation");
    let (scope, id, issued_at) = (parent.scope.clone(), id.to_owned(), parent.issued_at);
    let child = Child { parent, receipt: &receipt, scope, id, issued_at };
    child.signed(issuer, &[]).expect("a child token")
}
