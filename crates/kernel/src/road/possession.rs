//! Proof of possession: the subject itself signed this very call, for the first time.

use chio_core::capability::{DPOP_LIFETIME, DPOP_SKEW, DpopTarget};
use chio_core::hash::sha256_hex;
use chio_core::registry::ErrorCode;

use super::Draft;
use crate::call::{Denial, ToolCall};
use crate::store::{ProofUse, UseRefused};

/// The name under which the kernel denies proofs.
const GUARD: &str = "proof_of_possession";

fn deny(reason: impl Into<String>) -> Denial {
    Denial { code: ErrorCode::CapabilityDenied, ..Denial::by_guard(GUARD, reason) }
}

/// Checks the proof that came with a call, and notes that it is to be used up. One that was not
/// asked for has to hold as well.
pub(super) fn check_possession(
    call: &ToolCall,
    is_asked_for: bool,
    draft: &mut Draft,
) -> Result<(), Denial> {
    let Some(proof) = &call.dpop_proof else {
        return if is_asked_for {
            Err(deny("the grant asks for a proof of possession, found none"))
        } else {
            Ok(())
        };
    };
    let target = DpopTarget {
        token: &call.token,
        tool_server: &call.server_id,
        tool_name: &call.tool_name,
        arguments: &call.arguments,
    };
    proof.verify(&target, draft.record.started_at).map_err(|error| deny(error.to_string()))?;
    let (body, now) = (&proof.body, draft.record.started_at);
    draft.proofs.push(ProofUse {
        key: sha256_hex(format!("dpop\0{}\0{}", body.capability_id, body.nonce).as_bytes()),
        issued_at: body.issued_at,
        // Another kernel's clock may be behind ours.
        expires_at: body.issued_at.saturating_add(DPOP_LIFETIME + 2 * DPOP_SKEW),
        now,
    });
    Ok(())
}

/// The denial of a call whose proof or approval cannot be used.
pub(super) fn refusal(refused: UseRefused) -> Denial {
    match refused {
        UseRefused::ProofUsed => deny("the proof was used before"),
        UseRefused::ProofTooOld => {
            deny("the proof was made before this store began to remember proofs")
        }
        UseRefused::ProofForgotten => {
            deny("the proof may have been used: others that end no earlier are forgotten already")
        }
        UseRefused::ProofsFull => deny("no more proofs can be remembered now; try again later"),
        UseRefused::ApprovalUsed => super::approval::deny("the approval was used before"),
        UseRefused::ApprovalTooOld => super::approval::deny(
            "the approval was made before this store began to remember approvals",
        ),
        UseRefused::ApprovalForgotten => super::approval::deny(
            "the approval may have been used: others that ended after it was made are forgotten already",
        ),
    }
}
