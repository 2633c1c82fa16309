//! Chio's own metadata of a message, in `metadata.chio`.

use chio_edge::call_metadata::{CallMetadata, MetadataLayout, MetadataSource};
use serde_json::{Map, Value};

use crate::error::Fault;

/// The member of metadata that is Chio's.
const CHIO: &str = "chio";

static LAYOUT: MetadataLayout = MetadataLayout {
    path: "metadata.chio",
    members: &[
        ("targetSkillId", None),
        ("capability", None),
        ("modelMetadata", None),
        ("continuation", None),
        ("callChain", None),
        ("governedIntent", None),
        ("dpop", None),
        ("capabilityRef", None),
    ],
    unsupported: &[("approvalToken", None), ("approvalTokens", None), ("executionNonce", None)],
};

/// Reads the metadata of params and of a message, which must not contradict each other.
pub(crate) fn read(
    params: Option<&Map<String, Value>>,
    message: Option<&Map<String, Value>>,
) -> Result<CallMetadata, Fault> {
    let objects = [chio_member(params)?, chio_member(message)?];
    let source = MetadataSource { layout: &LAYOUT, objects };
    let metadata = source.refuse_unsupported().and_then(|()| CallMetadata::read(&source));
    metadata.map_err(|error| Fault::params(error.0))
}

/// The member `chio` of metadata; null is absent.
fn chio_member(
    metadata: Option<&Map<String, Value>>,
) -> Result<Option<&Map<String, Value>>, Fault> {
    match metadata.and_then(|metadata| metadata.get(CHIO)) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(chio)) => Ok(Some(chio)),
        Some(_) => Err(Fault::params("expected `metadata.chio` to be an object")),
    }
}

#[cfg(test)]
mod tests;
