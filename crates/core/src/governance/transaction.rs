//! What a receipt records of a governed call.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approval::{ApprovalDecision, ApprovalToken};
use super::call_chain::CallChainProvenance;
use super::intent::{Autonomy, Commerce, GovernedTransactionIntent, MeteredBilling};
use crate::canonical::CanonicalError;
use crate::crypto::PublicKey;
use crate::money::MonetaryAmount;
use crate::tier::RuntimeAssurance;

/// The block `governed_transaction` of a receipt's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GovernedTransactionReceipt {
    /// The intent's name.
    pub intent_id: String,
    /// The intent's hash.
    pub intent_hash: String,
    /// The intent's purpose.
    pub purpose: String,
    /// The server that the intent names.
    pub server_id: String,
    /// The tool that the intent names.
    pub tool_name: String,
    /// The most that the call was to cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_amount: Option<MonetaryAmount>,
    /// Who is paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commerce: Option<Commerce>,
    /// What was quoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metered_billing: Option<MeteredBilling>,
    /// The approval that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRecord>,
    /// The attestation that was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_assurance: Option<AssuranceRecord>,
    /// The call chain, and how strong its evidence is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_chain: Option<CallChainProvenance>,
    /// How far the caller acted on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autonomy: Option<Autonomy>,
    /// An authorization of the payment, passed on unchanged.
    #[serde(default, skip_serializing_if = "crate::text::is_absent")]
    pub economic_authorization: Option<Value>,
}

impl GovernedTransactionReceipt {
    /// The block of an intent alone: no approval, no attestation, and an asserted call chain.
    ///
    /// # Errors
    /// When the intent has no canonical form.
    pub fn new(intent: &GovernedTransactionIntent) -> Result<Self, CanonicalError> {
        Ok(Self {
            intent_id: intent.id.clone(),
            intent_hash: intent.hash()?,
            purpose: intent.purpose.clone(),
            server_id: intent.server_id.clone(),
            tool_name: intent.tool_name.clone(),
            max_amount: intent.max_amount.clone(),
            commerce: intent.commerce.clone(),
            metered_billing: intent.metered_billing.clone(),
            approval: None,
            runtime_assurance: None,
            call_chain: intent.call_chain.clone().map(CallChainProvenance::asserted),
            autonomy: intent.autonomy.clone(),
            economic_authorization: None,
        })
    }
}

/// The approval that a call was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRecord {
    /// The token's name.
    pub token_id: String,
    /// The key of the approver.
    pub approver_key: PublicKey,
    /// [`ApprovalToken::artifact_digest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_artifact_digest: Option<String>,
    /// Whether the answer was yes.
    pub approved: bool,
}

impl ApprovalRecord {
    /// The record of a token.
    ///
    /// # Errors
    /// When the token has no canonical form.
    pub fn new(token: &ApprovalToken) -> Result<Self, CanonicalError> {
        Ok(Self {
            token_id: token.id.clone(),
            approver_key: token.approver.clone(),
            approval_artifact_digest: Some(token.artifact_digest()?),
            approved: token.decision == ApprovalDecision::Approved,
        })
    }
}

/// The attestation that a kernel accepted from a caller's runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssuranceRecord {
    /// The format of the evidence.
    pub schema: String,
    /// The kind of verifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier_family: Option<String>,
    /// What it amounts to.
    pub tier: RuntimeAssurance,
    /// Who verified it.
    pub verifier: String,
    /// The digest of the evidence.
    pub evidence_sha256: String,
    /// What the workload is called, passed on unchanged.
    #[serde(default, skip_serializing_if = "crate::text::is_absent")]
    pub workload_identity: Option<Value>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::canonical;
    use crate::governance::tests::{golden, read_signed, text};

    #[test]
    fn the_block_keeps_what_the_intent_says_and_its_call_chain_as_asserted() {
        let intent = GovernedTransactionIntent::deserialize(golden("/intent")).unwrap();
        let block = GovernedTransactionReceipt::new(&intent).unwrap();
        let mut expected = golden("/intent");
        let members = expected.as_object_mut().unwrap();
        let id = members.remove("id").unwrap();
        members.insert("intent_id".to_owned(), id);
        members.insert("intent_hash".to_owned(), golden("/intent_hash"));
        expected["call_chain"] =
            serde_json::from_str(&text("/call_chain_provenance_asserted")).unwrap();
        assert_eq!(canonical::to_vec(&block).unwrap(), canonical::to_vec(&expected).unwrap());
    }

    #[test]
    fn a_block_of_a_plain_intent_has_five_members() {
        let intent = GovernedTransactionIntent::new("i", "s", "t", "p");
        let block = GovernedTransactionReceipt::new(&intent).unwrap();
        let expected = json!({"intent_id": "i", "intent_hash": intent.hash().unwrap(),
            "purpose": "p", "server_id": "s", "tool_name": "t"});
        assert_eq!(serde_json::to_value(block).unwrap(), expected);
    }

    #[test]
    fn the_record_of_an_approval_names_the_very_token() {
        let token: ApprovalToken = read_signed("approval", 4);
        let record = ApprovalRecord::new(&token).unwrap();
        assert_eq!(
            serde_json::to_value(&record).unwrap(),
            json!({
                "token_id": "approval-1",
                "approver_key": token.approver.to_hex(),
                "approval_artifact_digest": text("/approval/artifact_digest"),
                "approved": true,
            })
        );
        let denied = ApprovalToken { decision: ApprovalDecision::Denied, ..token };
        assert!(!ApprovalRecord::new(&denied).unwrap().approved);
    }

    #[test]
    fn an_accepted_attestation_is_written_in_camel_case() {
        let block = json!({
            "intent_id": "i", "intent_hash": "h", "purpose": "p", "server_id": "s",
            "tool_name": "t", "economic_authorization": {"any": 1},
            "runtime_assurance": {
                "schema": "s", "verifierFamily": "f", "tier": "verified", "verifier": "v",
                "evidenceSha256": "00", "workloadIdentity": {"uri": "u"},
            },
        });
        let read = GovernedTransactionReceipt::deserialize(&block).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), block);
    }
}
