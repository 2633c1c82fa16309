//! The text forms of public keys and signatures.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Algorithm, PUBLIC_KEY_LEN, SIGNATURE_LEN};
use crate::text::Text;

/// Why a text is not a key or a signature. It never repeats the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found} characters that are not")]
pub struct EncodingError {
    expected: &'static str,
    found: usize,
}

impl EncodingError {
    pub(super) fn new(expected: &'static str, text: &str) -> Self {
        Self { expected, found: text.chars().count() }
    }
}

/// An Ed25519 value in bytes, or another algorithm's in its normal text form.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Encoded<const N: usize> {
    Ed25519([u8; N]),
    Other(Algorithm, Box<str>),
}

/// What differs between keys and signatures of one algorithm.
struct Form {
    expected: &'static str,
    p256: fn(&[u8]) -> bool,
    p384: fn(&[u8]) -> bool,
    post_quantum_len: usize,
}

const KEY: Form = Form {
    expected: "a public key (64 hex digits, or `p256:`, `p384:` or `hybrid:` and their form)",
    p256: |bytes| bytes.len() == 65 && bytes.first() == Some(&4),
    p384: |bytes| bytes.len() == 97 && bytes.first() == Some(&4),
    post_quantum_len: 1952,
};

const SIGNATURE: Form = Form {
    expected: "a signature (128 hex digits, or `p256:`, `p384:` or `hybrid:` and their form)",
    // DER: a sequence, short enough for two integers of the curve's size.
    p256: |bytes| bytes.first() == Some(&0x30) && (8..=72).contains(&bytes.len()),
    p384: |bytes| bytes.first() == Some(&0x30) && (8..=104).contains(&bytes.len()),
    post_quantum_len: 3309,
};

impl<const N: usize> Encoded<N> {
    fn parse(text: &str, form: &Form) -> Result<Self, EncodingError> {
        let read = match text.strip_prefix("hybrid:") {
            Some(parts) => Self::read_hybrid(parts, form),
            None => Self::read_classical(text, form),
        };
        read.ok_or_else(|| EncodingError::new(form.expected, text))
    }

    fn read_classical(text: &str, form: &Form) -> Option<Self> {
        for (algorithm, has_form) in [(Algorithm::P256, form.p256), (Algorithm::P384, form.p384)] {
            let name = algorithm.name();
            if let Some(hex) = text.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')) {
                let bytes = const_hex::decode(hex).ok().filter(|bytes| has_form(bytes))?;
                let text = format!("{name}:{}", const_hex::encode(bytes));
                return Some(Self::Other(algorithm, text.into()));
            }
        }
        let mut bytes = [0; N];
        const_hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self::Ed25519(bytes))
    }

    /// Reads what follows `hybrid:`. Its classical part is never hybrid itself.
    fn read_hybrid(parts: &str, form: &Form) -> Option<Self> {
        let (rest, set) = parts.rsplit_once(':')?;
        let (classical, post_quantum) = rest.rsplit_once(':')?;
        let classical = Self::read_classical(classical, form)?;
        let post_quantum = const_hex::decode(post_quantum)
            .ok()
            .filter(|bytes| bytes.len() == form.post_quantum_len)?;
        let text = format!("hybrid:{classical}:{}:{set}", const_hex::encode(post_quantum));
        let fits = set.strip_suffix("+mldsa65") == Some(classical.algorithm().name());
        fits.then(|| Self::Other(Algorithm::Hybrid, text.into()))
    }

    const fn algorithm(&self) -> Algorithm {
        match self {
            Self::Ed25519(_) => Algorithm::Ed25519,
            Self::Other(algorithm, _) => *algorithm,
        }
    }

    const fn as_ed25519(&self) -> Option<&[u8; N]> {
        match self {
            Self::Ed25519(bytes) => Some(bytes),
            Self::Other(..) => None,
        }
    }

    /// Passes the text form on, without an allocation.
    fn with_text<R>(&self, write: impl FnOnce(&str) -> R) -> R {
        match self {
            Self::Ed25519(bytes) => write(const_hex::Buffer::<N, false>::new().format(bytes)),
            Self::Other(_, text) => write(text),
        }
    }
}

impl<const N: usize> fmt::Display for Encoded<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| f.write_str(text))
    }
}

/// Gives a newtype over [`Encoded`] its constructors, text form and serde form.
macro_rules! encoded_type {
    ($name:ident, $len:expr, $form:expr) => {
        impl $name {
            /// Wraps Ed25519 bytes.
            pub const fn from_ed25519(bytes: [u8; $len]) -> Self {
                Self(Encoded::Ed25519(bytes))
            }

            /// The Ed25519 bytes; none for another algorithm.
            pub const fn as_ed25519(&self) -> Option<&[u8; $len]> {
                self.0.as_ed25519()
            }

            /// The algorithm, as the text form shows it.
            pub const fn algorithm(&self) -> Algorithm {
                self.0.algorithm()
            }

            /// Reads the text form; `0x` and upper case are accepted.
            ///
            /// # Errors
            /// When the text has no known form.
            pub fn from_hex(text: &str) -> Result<Self, EncodingError> {
                Encoded::parse(text, &$form).map(Self)
            }

            /// The normal text form: lowercase hex, without prefix for Ed25519.
            pub fn to_hex(&self) -> String {
                self.0.to_string()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = EncodingError;

            fn from_str(text: &str) -> Result<Self, EncodingError> {
                Self::from_hex(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.with_text(|text| serializer.serialize_str(text))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Text::deserialize(deserializer)?;
                Self::from_hex(&text.0).map_err(de::Error::custom)
            }
        }
    };
}

/// A public key of any known algorithm.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(Encoded<PUBLIC_KEY_LEN>);

/// A signature of any known algorithm.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature(Encoded<SIGNATURE_LEN>);

encoded_type!(PublicKey, PUBLIC_KEY_LEN, KEY);
encoded_type!(Signature, SIGNATURE_LEN, SIGNATURE);

impl Signature {
    /// All zeros: what stands in an artifact until it is signed.
    pub const fn blank() -> Self {
        Self::from_ed25519([0; SIGNATURE_LEN])
    }
}
