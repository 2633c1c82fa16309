//! How a session was opened: the kernel's signed anchor of its agent, transport and authentication.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::canonical::{self, CanonicalError};
use crate::crypto::{PublicKey, Signature};
use crate::hash::sha256_hex;
use crate::signed::{ArtifactError, Signed, malformed, require_schema, signed_by};
use crate::text::is_absent;

/// Hex digits of the context's hash in an anchor's id.
const ID_DIGITS: usize = 12;

/// The transport of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A call within the process.
    InProcess,
    /// Standard input and output of a child process.
    Stdio,
    /// HTTP with streams.
    StreamableHttp,
}

/// How a session's agent was authenticated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AuthMethod {
    /// It was not.
    Anonymous,
    /// With a token that the operator has set.
    StaticBearer {
        /// The principal of the token.
        principal: String,
        /// The hash of the token.
        token_fingerprint: String,
    },
    /// With a token of an authorization server.
    #[serde(rename = "o_auth_bearer")]
    OauthBearer(Box<OauthBearer>),
}

/// What an authorization server's token says. The casing is mixed on the wire.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OauthBearer {
    /// The principal of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Who issued it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The issuer's name for the principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Whom it was issued for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// What it allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// What an identity provider adds, passed on unchanged.
    #[serde(default, rename = "federatedClaims", skip_serializing_if = "Map::is_empty")]
    pub federated_claims: Map<String, Value>,
    /// Who the principal is in its organisation, passed on unchanged.
    #[serde(default, rename = "enterpriseIdentity", skip_serializing_if = "is_absent")]
    pub enterprise_identity: Option<Value>,
    /// The hash of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_fingerprint: Option<String>,
}

impl AuthMethod {
    /// The hash of the token that was shown.
    pub fn token_fingerprint(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::StaticBearer { token_fingerprint, .. } => Some(token_fingerprint),
            Self::OauthBearer(bearer) => bearer.token_fingerprint.as_deref(),
        }
    }
}

/// The transport of a session, and how its agent was authenticated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthContext {
    /// The transport.
    pub transport: Transport,
    /// How the agent was authenticated.
    pub method: AuthMethod,
    /// The web origin that a browser named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// What a session is bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProofBinding {
    /// The hash of the bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_fingerprint: Option<String>,
    /// The thumbprint of the key that signs proofs of possession.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_public_key_thumbprint: Option<String>,
    /// The thumbprint of the client's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtls_thumbprint_sha256: Option<String>,
    /// The digest of the runtime's attestation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_attestation_sha256: Option<String>,
}

impl ProofBinding {
    /// Whether a `proofBinding` member is left out: it is when it binds nothing.
    fn is_empty(binding: &Option<Self>) -> bool {
        binding.as_ref().is_none_or(|binding| *binding == Self::default())
    }
}

/// The kernel's signed statement of how a session was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionAnchor {
    /// [`Self::SCHEMA`].
    pub schema: String,
    /// The anchor's id.
    pub id: String,
    /// The session.
    pub session_id: String,
    /// The agent.
    pub agent_id: String,
    /// Transport and authentication.
    pub auth_context: AuthContext,
    /// [`canonical::hash`] of the context.
    pub auth_context_hash: String,
    /// [`canonical::hash`] of its method.
    pub auth_method_hash: String,
    /// What the session is bound to.
    #[serde(default, skip_serializing_if = "ProofBinding::is_empty")]
    pub proof_binding: Option<ProofBinding>,
    /// Counts the authentications of the session.
    pub auth_epoch: u64,
    /// When it was signed, in Unix seconds.
    pub issued_at: u64,
    /// The kernel, which signs.
    pub kernel_key: PublicKey,
    /// The kernel's signature over the rest.
    pub signature: Signature,
}

signed_by!(SessionAnchor, kernel_key, SessionAnchor::check_hashes);

impl SessionAnchor {
    /// The value of `schema`.
    pub const SCHEMA: &'static str = "chio.session_anchor.v1";

    /// An anchor that is still to be signed, bound to the token of its method if there is one.
    ///
    /// # Errors
    /// When the context has no canonical form.
    pub fn new(
        session_id: &str,
        agent_id: &str,
        auth_context: AuthContext,
        auth_epoch: u64,
        issued_at: u64,
        kernel_key: PublicKey,
    ) -> Result<Self, CanonicalError> {
        let auth_context_hash = canonical::hash(&auth_context)?;
        let digits: String = auth_context_hash.chars().take(ID_DIGITS).collect();
        let fingerprint = auth_context.method.token_fingerprint().map(str::to_owned);
        Ok(Self {
            schema: Self::SCHEMA.to_owned(),
            id: format!("{session_id}:anchor:{auth_epoch}:{digits}"),
            session_id: session_id.to_owned(),
            agent_id: agent_id.to_owned(),
            auth_method_hash: canonical::hash(&auth_context.method)?,
            auth_context_hash,
            proof_binding: fingerprint.map(|fingerprint| ProofBinding {
                token_fingerprint: Some(fingerprint),
                ..ProofBinding::default()
            }),
            auth_context,
            auth_epoch,
            issued_at,
            kernel_key,
            signature: Signature::blank(),
        })
    }

    /// The hash by which other artifacts name this anchor.
    ///
    /// # Errors
    /// When the anchor has no canonical form.
    pub fn hash(&self) -> Result<String, CanonicalError> {
        Ok(sha256_hex(&self.signing_input()?))
    }

    /// What other artifacts carry of this anchor.
    ///
    /// # Errors
    /// When the anchor has no canonical form.
    pub fn reference(&self) -> Result<SessionAnchorReference, CanonicalError> {
        let hash = self.hash()?;
        Ok(SessionAnchorReference { session_anchor_id: self.id.clone(), session_anchor_hash: hash })
    }

    fn check_hashes(&self) -> Result<(), ArtifactError> {
        require_schema(Self::SCHEMA, &self.schema)?;
        let (context, method) = (&self.auth_context, &self.auth_context.method);
        require_hash("authContextHash", &canonical::hash(context)?, &self.auth_context_hash)?;
        require_hash("authMethodHash", &canonical::hash(method)?, &self.auth_method_hash)
    }
}

fn require_hash(member: &str, expected: &str, found: &str) -> Result<(), ArtifactError> {
    if expected == found {
        return Ok(());
    }
    Err(malformed(format!("expected `{member}` to be `{expected}`, found `{found}`")))
}

/// An anchor, by name and hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionAnchorReference {
    /// [`SessionAnchor::id`].
    pub session_anchor_id: String,
    /// [`SessionAnchor::hash`].
    pub session_anchor_hash: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::governance::tests::{golden, key, read_signed, text};

    const GOLDEN: [&str; 3] =
        ["session_anchor_oauth", "session_anchor_static_bearer", "session_anchor_stdio_anonymous"];

    fn anchor(name: &str) -> SessionAnchor {
        read_signed(name, 7)
    }

    #[test]
    fn the_golden_anchors_have_the_golden_bytes_and_hashes() {
        for name in GOLDEN {
            let anchor = anchor(name);
            let input = String::from_utf8(anchor.signing_input().unwrap()).unwrap();
            assert_eq!(input, text(&format!("/{name}/signing_input_canonical")));
            assert_eq!(anchor.hash().unwrap(), text(&format!("/{name}/anchor_hash")));
            assert_eq!(
                serde_json::to_value(anchor.reference().unwrap()).unwrap(),
                golden(&format!("/{name}/reference"))
            );
        }
    }

    #[test]
    fn a_new_anchor_is_the_golden_one_but_for_its_name() {
        for name in GOLDEN {
            let golden = anchor(name);
            let new = SessionAnchor::new(
                &golden.session_id,
                &golden.agent_id,
                golden.auth_context.clone(),
                golden.auth_epoch,
                golden.issued_at,
                golden.kernel_key.clone(),
            )
            .unwrap();
            let digits = &golden.auth_context_hash.get(..12).unwrap();
            assert_eq!(new.id, format!("sess-1:anchor:1:{digits}"));
            let renamed = SessionAnchor { id: golden.id.clone(), ..new };
            assert_eq!(renamed.signed(&key(7)).unwrap(), golden);
        }
    }

    /// A change, and what the error expects instead.
    type Change = (&'static str, fn(&mut SessionAnchor));

    #[test]
    fn hashes_and_schema_must_be_their_own() {
        let changes: [Change; 4] = [
            ("`authContextHash`", |anchor| anchor.auth_context.transport = Transport::InProcess),
            ("`authContextHash`", |anchor| anchor.auth_context_hash = "other".to_owned()),
            ("`authMethodHash`", |anchor| anchor.auth_method_hash = "other".to_owned()),
            ("schema `chio.session_anchor.v1`", |anchor| anchor.schema = "other".to_owned()),
        ];
        for (named, change) in changes {
            let mut anchor = anchor("session_anchor_oauth");
            change(&mut anchor);
            for outcome in [anchor.check_signature(), anchor.signed(&key(7)).map(drop)] {
                let message = outcome.unwrap_err().to_string();
                assert!(message.starts_with(&format!("expected {named}")), "{message}");
            }
        }
    }

    #[test]
    fn an_anchor_is_signed_by_the_kernel_it_names() {
        let outcome = anchor("session_anchor_oauth").signed(&key(1));
        assert!(matches!(outcome, Err(ArtifactError::WrongKey { .. })));
    }

    #[test]
    fn a_binding_that_binds_nothing_is_left_out() {
        let mut value = serde_json::to_value(anchor("session_anchor_stdio_anonymous")).unwrap();
        for binding in [json!({}), json!(null), json!({"tokenFingerprint": null})] {
            value["proofBinding"] = binding;
            let anchor = SessionAnchor::deserialize(&value).unwrap();
            assert_eq!(anchor.check_signature(), Ok(()));
        }
    }

    #[test]
    fn every_member_keeps_its_spelling() {
        let method = json!({
            "kind": "o_auth_bearer", "principal": "p", "issuer": "i", "subject": "s",
            "audience": "a", "scopes": ["x"], "federatedClaims": {"any": 1},
            "enterpriseIdentity": {"any": 2}, "token_fingerprint": "f",
        });
        let read = AuthMethod::deserialize(&method).unwrap();
        assert_eq!(read.token_fingerprint(), Some("f"));
        assert_eq!(serde_json::to_value(read).unwrap(), method);

        let bare = json!({"kind": "o_auth_bearer"});
        let read = AuthMethod::deserialize(&bare).unwrap();
        assert_eq!(read, AuthMethod::OauthBearer(Box::default()));
        assert_eq!(serde_json::to_value(read).unwrap(), bare);

        let binding = json!({
            "tokenFingerprint": "t", "dpopPublicKeyThumbprint": "d", "mtlsThumbprintSha256": "m",
            "runtimeAttestationSha256": "r",
        });
        let read = ProofBinding::deserialize(&binding).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), binding);
    }
}
