//! Receipt lineage: the kernel's signed statement of a parent and its child.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::canonical::{self, CanonicalError};
use crate::crypto::{PublicKey, Signature};
use crate::governance::EvidenceClass;
use crate::session::SessionAnchorReference;
use crate::signed::{require_schema, signed_by};

/// The relation of a child to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelationKind {
    /// The parent's own kernel ran the child.
    LocalChild,
    /// The child continues a call from elsewhere.
    Continued,
}

/// The kernel's signed statement that one receipt is the child of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptLineageStatement {
    /// [`Self::SCHEMA`].
    pub schema: String,
    /// The statement's id.
    pub id: String,
    /// The parent's receipt.
    pub parent_receipt_id: String,
    /// The child's receipt.
    pub child_receipt_id: String,
    /// The parent's request.
    pub parent_request_id: String,
    /// The child's request.
    pub child_request_id: String,
    /// The parent's session.
    pub parent_session_anchor: SessionAnchorReference,
    /// The child's session.
    pub child_session_anchor: SessionAnchorReference,
    /// Their relation.
    pub relation_kind: RelationKind,
    /// How strong the evidence is; always written.
    #[serde(default = "verified")]
    pub evidence_class: EvidenceClass,
    /// The token with which the call was continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation_token_id: Option<String>,
    /// When it was signed, in Unix seconds.
    pub issued_at: u64,
    /// The kernel, which signs.
    pub kernel_key: PublicKey,
    /// The kernel's signature over the rest.
    pub signature: Signature,
}

signed_by!(ReceiptLineageStatement, kernel_key, |statement| require_schema(
    ReceiptLineageStatement::SCHEMA,
    &statement.schema
));

impl ReceiptLineageStatement {
    /// The value of `schema`.
    pub const SCHEMA: &'static str = "chio.receipt_lineage_statement.v1";
}

/// The class of a statement without one.
const fn verified() -> EvidenceClass {
    EvidenceClass::Verified
}

/// The hash of a set of parents; order and repetition do not matter.
///
/// # Errors
/// Never: every text has a canonical form.
pub fn parent_set_hash<I>(ids: I) -> Result<String, CanonicalError>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let ids: Vec<I::Item> = ids.into_iter().collect();
    canonical::hash(&ids.iter().map(AsRef::as_ref).collect::<BTreeSet<&str>>())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::governance::tests::{key, read_signed};
    use crate::signed::Signed;

    fn statement() -> ReceiptLineageStatement {
        read_signed("receipt_lineage_statement", 7)
    }

    #[test]
    fn the_golden_statement_keeps_its_bytes_and_its_signature() {
        let statement = statement();
        assert_eq!(statement.relation_kind, RelationKind::LocalChild);
        assert_eq!(statement.evidence_class, EvidenceClass::Verified);
    }

    #[test]
    fn a_statement_that_names_no_class_is_verified_and_keeps_its_signature() {
        let mut value = serde_json::to_value(statement()).unwrap();
        value.as_object_mut().unwrap().remove("evidenceClass");
        let read = ReceiptLineageStatement::deserialize(&value).unwrap();
        assert_eq!(read, statement());
        assert_eq!(read.check_signature(), Ok(()));
    }

    #[test]
    fn a_continued_call_names_its_token() {
        let mut value = serde_json::to_value(statement()).unwrap();
        value["relationKind"] = json!("continued");
        value["evidenceClass"] = json!("observed");
        value["continuationTokenId"] = json!("cont-1");
        let read = ReceiptLineageStatement::deserialize(&value).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), value);
        assert!(read.check_signature().is_err());
    }

    #[test]
    fn a_statement_of_another_schema_is_refused() {
        let other = ReceiptLineageStatement { schema: "other".to_owned(), ..statement() };
        assert_eq!(
            other.signed(&key(7)).unwrap_err().to_string(),
            "expected schema `chio.receipt_lineage_statement.v1`, found `other`"
        );
    }

    #[test]
    fn a_set_of_parents_has_one_hash() {
        let text = include_str!("../../../spec/vectors/golden/receipt.json");
        let golden: Value = serde_json::from_str(text).unwrap();
        let expected = golden["parent_set_hash"]["hash"].as_str().unwrap();
        let ids = Vec::<String>::deserialize(&golden["parent_set_hash"]["ids"]).unwrap();
        assert_eq!(parent_set_hash(&ids).unwrap(), expected);
        assert_eq!(parent_set_hash(["a", "b"]).unwrap(), expected);
        assert_eq!(parent_set_hash(["b", "a", "a"]).unwrap(), expected);
        assert_ne!(parent_set_hash(["a"]).unwrap(), expected);
    }
}
