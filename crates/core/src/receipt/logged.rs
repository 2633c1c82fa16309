//! A receipt of either kind, as a log holds them.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use super::{ChildReceipt, ChioReceipt};
use crate::crypto::PublicKey;
use crate::principal::NamedPrincipal;
use crate::signed::{ArtifactError, Signed};
use crate::strict::{self, StrictError};

/// A receipt of a call, or of what happened inside one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum LoggedReceipt {
    /// Of a call.
    Call(Box<ChioReceipt>),
    /// Of what happened inside a call.
    Child(Box<ChildReceipt>),
}

/// The members that distinguish the two kinds.
#[derive(Deserialize)]
struct Shape {
    #[serde(default)]
    terminal_state: Option<de::IgnoredAny>,
    #[serde(default)]
    receipt_kind: Option<de::IgnoredAny>,
}

impl Shape {
    /// Only a child has the one, only a call the other; anything else may be an unsigned extra.
    const fn is_child(&self) -> bool {
        self.terminal_state.is_some() && self.receipt_kind.is_none()
    }
}

impl LoggedReceipt {
    /// Reads a receipt of the kind that its members show.
    ///
    /// # Errors
    /// When the text is neither.
    pub fn from_slice(text: &[u8]) -> Result<Self, StrictError> {
        if strict::object_from_slice::<Shape>(text)?.is_child() {
            return strict::object_from_slice(text).map(Self::Child);
        }
        strict::object_from_slice(text).map(Self::Call)
    }

    /// Checks that the receipt is unchanged since the key that it names signed it.
    ///
    /// # Errors
    /// With the first check that fails.
    pub fn verify(&self) -> Result<(), ArtifactError> {
        match self {
            Self::Call(receipt) => receipt.verify(),
            Self::Child(receipt) => receipt.check_signature(),
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        match self {
            Self::Call(receipt) => &receipt.id,
            Self::Child(receipt) => &receipt.id,
        }
    }

    /// The key that signed.
    pub fn kernel_key(&self) -> &PublicKey {
        match self {
            Self::Call(receipt) => &receipt.kernel_key,
            Self::Child(receipt) => &receipt.kernel_key,
        }
    }

    /// When it was signed, in Unix seconds.
    pub fn timestamp(&self) -> u64 {
        match self {
            Self::Call(receipt) => receipt.timestamp,
            Self::Child(receipt) => receipt.timestamp,
        }
    }

    /// Who called, where that is a principal with a name.
    pub fn principal(&self) -> Option<NamedPrincipal<'static>> {
        let metadata = match self {
            Self::Call(receipt) => receipt.metadata.as_ref(),
            Self::Child(receipt) => receipt.metadata.as_ref(),
        };
        NamedPrincipal::deserialize(metadata?.get(NamedPrincipal::METADATA_MEMBER)?).ok()
    }

    /// The kernel's own name of the call or question.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Call(receipt) => {
                receipt.metadata.as_ref()?.get("receipt_context")?.get("request_id")?.as_str()
            }
            Self::Child(receipt) => Some(&receipt.request_id),
        }
    }
}

impl<'de> Deserialize<'de> for LoggedReceipt {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let has = |member| value.get(member).is_some();
        if has("terminal_state") && !has("receipt_kind") {
            return strict::from_value(value).map(Self::Child).map_err(de::Error::custom);
        }
        strict::from_value(value).map(Self::Call).map_err(de::Error::custom)
    }
}
