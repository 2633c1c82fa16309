//! Tokens of the test world: issued by key 1, held by key 2, handed on to any key.

use chio_core::capability::{
    CapabilityToken, Child, ChioScope, Constraint, Delegation, Operation, ToolGrant, Validity,
    delegate,
};
use chio_core::crypto::Keypair;
use chio_core::money::MonetaryAmount;
use chio_core::signed::Signed;
use chio_testkit::key;

use super::{NOW, SERVER};

/// Whom the kernel trusts to issue.
pub(crate) fn issuer() -> Keypair {
    key(1)
}

/// Who calls.
pub(crate) fn agent() -> Keypair {
    key(2)
}

/// This many cents.
pub(crate) fn usd(units: u64) -> MonetaryAmount {
    MonetaryAmount::new(units, "USD")
}

/// Leave to call a tool of the test server and to hand that on.
pub(crate) fn grant(tool: &str) -> ToolGrant {
    ToolGrant {
        server_id: SERVER.to_owned(),
        tool_name: tool.to_owned(),
        operations: vec![Operation::Invoke, Operation::Delegate],
        constraints: Vec::new(),
        max_invocations: None,
        max_cost_per_invocation: None,
        max_total_cost: None,
        dpop_required: None,
    }
}

/// As [`grant`], for this many calls.
pub(crate) fn counted(tool: &str, most: u32) -> ToolGrant {
    ToolGrant { max_invocations: Some(most), ..grant(tool) }
}

/// As [`grant`], for this many cents in all.
pub(crate) fn priced(tool: &str, total: u64) -> ToolGrant {
    ToolGrant { max_total_cost: Some(usd(total)), ..grant(tool) }
}

/// As [`grant`], on a condition.
pub(crate) fn constrained(tool: &str, constraint: Constraint) -> ToolGrant {
    ToolGrant { constraints: vec![constraint], ..grant(tool) }
}

/// An hour from [`NOW`].
pub(crate) const HOUR: Validity = Validity { issued_at: NOW, expires_at: NOW + 3600 };

pub(crate) fn scope(grants: &[ToolGrant]) -> ChioScope {
    ChioScope { grants: grants.to_vec(), ..ChioScope::default() }
}

/// A token that is not signed.
pub(crate) fn draft(id: &str, grants: &[ToolGrant]) -> CapabilityToken {
    let (issuer, subject) = (issuer().public_key().clone(), agent().public_key().clone());
    CapabilityToken::draft(id, issuer, subject, scope(grants), HOUR)
}

/// The agent's token with these grants.
pub(crate) fn token(id: &str, grants: &[ToolGrant]) -> CapabilityToken {
    draft(id, grants).signed(&issuer()).unwrap()
}

/// The token of `to`, to whom `holder` hands these grants of `parent` on.
pub(crate) fn child(
    id: &str,
    parent: &CapabilityToken,
    holder: &Keypair,
    to: &Keypair,
    grants: &[ToolGrant],
) -> CapabilityToken {
    let delegation = Delegation {
        delegatee: to.public_key().clone(),
        scope: scope(grants),
        expires_at: parent.expires_at,
        steps: Vec::new(),
        budget_share_bps: None,
        signed_at: NOW,
        nonce: [7; 16],
    };
    let receipt = delegate(parent, delegation, holder).unwrap();
    let (scope, id) = (scope(grants), id.to_owned());
    let child = Child { parent, receipt: &receipt, scope, id, issued_at: NOW };
    child.signed(&issuer(), &[]).unwrap()
}
