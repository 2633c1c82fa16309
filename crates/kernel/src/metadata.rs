//! The metadata of a receipt in the making.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use chio_core::canonical::Written;
use chio_core::capability::CapabilityToken;
use chio_core::crypto::PublicKey;
use chio_core::hash::sha256_hex;
use chio_core::principal::{NamedPrincipal, Principal};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

const ATTRIBUTION: &str = "attribution";

/// Members of a receipt's metadata, in order. What was written before is copied.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metadata(BTreeMap<Cow<'static, str>, Member>);

#[derive(Debug, Clone)]
enum Member {
    Value(Value),
    Written(Written),
    Attribution(Attribution),
    Context(String),
    /// One that has shown a name.
    Principal(Arc<Principal>),
}

/// Whose authority is used; members in canonical order.
#[derive(Debug, Clone, Serialize)]
struct Attribution {
    delegation_depth: usize,
    /// The grant of the token that is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant_index: Option<u32>,
    issuer_key: PublicKey,
    subject_key: PublicKey,
    /// Written when it is false: then all of this is what the token claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<bool>,
}

/// The kernel's own name of the call.
#[derive(Serialize)]
struct Context<'a> {
    request_id: &'a str,
}

impl Metadata {
    /// The members of an object that was kept.
    pub(crate) fn of(kept: &Written) -> Self {
        let Value::Object(members) = kept.to_value() else { return Self::default() };
        let member = |(name, value)| (Cow::Owned(name), Member::Value(value));
        Self(members.into_iter().map(member).collect())
    }

    pub(crate) fn insert(&mut self, name: &'static str, value: Value) {
        self.0.insert(Cow::Borrowed(name), Member::Value(value));
    }

    pub(crate) fn insert_written(&mut self, name: &'static str, value: Written) {
        self.0.insert(Cow::Borrowed(name), Member::Written(value));
    }

    pub(crate) fn set_context(&mut self, request_id: &str) {
        self.0.insert(Cow::Borrowed("receipt_context"), Member::Context(request_id.to_owned()));
    }

    /// Says who calls, if that is a principal with a name.
    pub(crate) fn name_principal(&mut self, principal: &Arc<Principal>) {
        if principal.is_authenticated() {
            let name = Cow::Borrowed(NamedPrincipal::METADATA_MEMBER);
            self.0.insert(name, Member::Principal(Arc::clone(principal)));
        }
    }

    /// Says whose authority is used. Before verification that is what the token claims.
    pub(crate) fn attribute(&mut self, token: &CapabilityToken) {
        let attribution = Attribution {
            delegation_depth: token.delegation_chain.len(),
            grant_index: None,
            issuer_key: token.issuer.clone(),
            subject_key: token.subject.clone(),
            verified: None,
        };
        self.0.insert(Cow::Borrowed(ATTRIBUTION), Member::Attribution(attribution));
    }

    /// Notes which grant of the token is used.
    pub(crate) fn set_grant(&mut self, index: u32) {
        match self.0.get_mut(ATTRIBUTION) {
            Some(Member::Attribution(attribution)) => attribution.grant_index = Some(index),
            Some(Member::Value(Value::Object(kept))) => {
                kept.insert("grant_index".to_owned(), Value::from(index));
            }
            _ => {}
        }
    }

    /// Which grant of the token is used.
    pub(crate) fn grant_index(&self) -> Option<u32> {
        match self.0.get(ATTRIBUTION) {
            Some(Member::Attribution(attribution)) => attribution.grant_index,
            _ => None,
        }
    }

    /// Notes that the token was not found to hold, and keeps no more than the hash of whatever was
    /// handed in and is larger than this.
    pub(crate) fn distrust(&mut self, most: usize) {
        for member in self.0.values_mut() {
            match member {
                Member::Attribution(attribution) => attribution.verified = Some(false),
                Member::Written(written) if written.as_str().len() > most => {
                    let text = written.as_str();
                    let (size, hash) = (text.len(), sha256_hex(text.as_bytes()));
                    *member = Member::Value(json!({"omitted_bytes": size, "sha256": hash}));
                }
                _ => {}
            }
        }
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.0)
    }
}

impl Serialize for Member {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Written(written) => written.serialize(serializer),
            Self::Attribution(attribution) => attribution.serialize(serializer),
            Self::Context(request_id) => Context { request_id }.serialize(serializer),
            Self::Principal(principal) => principal.named().serialize(serializer),
        }
    }
}
