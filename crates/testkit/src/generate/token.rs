//! Random tokens, signed, with chains of honest links.

use chio_core::capability::{CapabilityToken, DelegationLink, Validity};
use chio_core::crypto::Signature;
use chio_core::signed::Signed;
use proptest::prelude::*;

use super::scope::{scope, steps};
use crate::key;

/// A signed token of the issuer with seed 1, handed on up to three times.
pub fn token() -> impl Strategy<Value = CapabilityToken> {
    let links = proptest::collection::vec((steps(), any::<bool>()), 0..3);
    ("cap-[a-z0-9]{1,8}", scope(), links, 0u64..1000, 1u64..1000).prop_filter_map(
        "tokens of rare profiles are not made",
        |(id, scope, links, issued_at, lifetime)| {
            // Holder n has seed 2 + n.
            let holder = |n: usize| key(u8::try_from(n).unwrap_or_default().saturating_add(2));
            let subject = holder(links.len()).public_key().clone();
            let validity = Validity { issued_at, expires_at: issued_at + lifetime };
            let issuer = key(1);
            let mut token =
                CapabilityToken::draft(id, issuer.public_key().clone(), subject, scope, validity);
            for (n, (attenuations, hashed)) in links.into_iter().enumerate() {
                let delegator = holder(n);
                let link = DelegationLink {
                    capability_id: format!("cap-parent-{n}"),
                    delegator: delegator.public_key().clone(),
                    delegatee: holder(n + 1).public_key().clone(),
                    attenuations,
                    timestamp: issued_at,
                    scope_hash: if hashed { token.scope.hash().ok() } else { None },
                    aggregate_budget: None,
                    cumulative_approval: None,
                    signature: Signature::blank(),
                };
                token.delegation_chain.push(link.signed(&delegator).ok()?);
            }
            token.signed(&issuer).ok()
        },
    )
}
