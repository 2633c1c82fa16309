//! The model behind a call, and whether that was verified.

use serde::{Deserialize, Serialize};

use crate::tier::SafetyTier;

/// Whether model metadata was verified.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ProvenanceClass {
    /// Claimed by the caller.
    #[default]
    Asserted,
    /// Verified.
    Verified,
}

impl ProvenanceClass {
    fn is_asserted(&self) -> bool {
        *self == Self::Asserted
    }
}

/// The model behind a call. Requests leave the class out when it is `asserted`; receipts write
/// [`Self::as_recorded`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelMetadata {
    /// The model's name.
    pub model_id: String,
    /// How careful the model is known to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_tier: Option<SafetyTier>,
    /// Who runs the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Whether the rest was verified.
    #[serde(default, skip_serializing_if = "ProvenanceClass::is_asserted")]
    pub provenance_class: ProvenanceClass,
}

impl ModelMetadata {
    /// The same metadata as the caller's claim, whatever class the caller gave.
    #[must_use]
    pub fn asserted(self) -> Self {
        Self { provenance_class: ProvenanceClass::Asserted, ..self }
    }

    /// The form in receipts.
    pub fn as_recorded(&self) -> RecordedModel<'_> {
        RecordedModel {
            model_id: &self.model_id,
            safety_tier: self.safety_tier,
            provider: self.provider.as_deref(),
            provenance_class: self.provenance_class,
        }
    }
}

/// Model metadata as receipts write it: with its class, always. Reads back as [`ModelMetadata`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RecordedModel<'a> {
    model_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    safety_tier: Option<SafetyTier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
    provenance_class: ProvenanceClass,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical;
    use crate::governance::tests::text;
    use crate::strict;

    const VERIFIED: &str =
        r#"{"model_id":"m","provenance_class":"verified","provider":"p","safety_tier":"high"}"#;
    const RECORDED: &str =
        r#"{"model_id":"m","provenance_class":"asserted","provider":"p","safety_tier":"high"}"#;

    fn read(text: &str) -> ModelMetadata {
        strict::from_slice(text.as_bytes()).unwrap()
    }

    #[test]
    fn requests_leave_the_asserted_class_out() {
        let golden = text("/model_metadata_default_provenance");
        let spelled_out = r#"{"model_id":"m","provider":null,"provenance_class":"asserted"}"#;
        for text in [&golden, spelled_out] {
            let metadata = read(text);
            assert_eq!(metadata.provenance_class, ProvenanceClass::Asserted);
            assert_eq!(canonical::to_string(&metadata).unwrap(), golden);
        }
        assert_eq!(canonical::to_string(&read(VERIFIED)).unwrap(), VERIFIED);
    }

    #[test]
    fn a_callers_claim_of_verified_counts_as_asserted() {
        let admitted = read(VERIFIED).asserted();
        assert_eq!(
            admitted,
            ModelMetadata { provenance_class: ProvenanceClass::Asserted, ..read(VERIFIED) }
        );
        assert_eq!(admitted.clone().asserted(), admitted);
    }

    #[test]
    fn receipts_always_write_the_class_and_it_reads_back_the_same() {
        let asserted = read(VERIFIED).asserted();
        for (metadata, recorded) in [(asserted, RECORDED), (read(VERIFIED), VERIFIED)] {
            assert_eq!(canonical::to_string(&metadata.as_recorded()).unwrap(), recorded);
            assert_eq!(read(recorded), metadata);
        }
    }
}
