//! The principal: who calls, from authentication to the session of a call.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::capability::PresentedToken;
use crate::crypto::PublicKey;
use crate::text::name_or_hash;

/// The name of a principal that has not authenticated.
pub const ANONYMOUS: &str = "anonymous";
/// The name of the process at the other end of standard input and output.
pub const STDIO: &str = "stdio";

/// Who calls. Sessions, tasks and limits belong to a principal, never to the bytes of a token: a
/// token that is refreshed changes nothing.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Principal {
    /// Unique on a listener: names that the operator gives and names of authorization servers
    /// never coincide.
    pub name: String,
    /// The tenant, where an authorization server names one.
    pub tenant: Option<String>,
    /// The groups, where an authorization server lists them.
    pub groups: Vec<String>,
    /// All claims of the token of an authorization server; empty for other credentials.
    pub claims: Map<String, Value>,
    /// The key that the principal holds, or that admission assigned to its name. Without one, each
    /// capability stands for its own subject.
    pub subject: Option<PublicKey>,
    /// The only capability that the principal may use: presented by it, or set for it by the
    /// operator. Without one, the token issuer decides. It is kept apart from the rest.
    #[serde(skip)]
    pub capability: Option<PresentedToken>,
    /// How the principal has authenticated.
    pub credential: Credential,
}

/// How a principal has authenticated. Tokens are represented by their SHA-256 only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Credential {
    /// Not at all.
    None,
    /// By having started this process: it is at the other end of standard input and output.
    Process,
    /// By the operating system, over a Unix socket.
    Unix {
        /// The user id of the other end.
        user: Option<u32>,
        /// The process id of the other end.
        process: Option<i32>,
    },
    /// With a bearer token that the operator has set.
    StaticBearer {
        /// The SHA-256 of the token, in hex.
        fingerprint: String,
    },
    /// With a token of an authorization server.
    OauthBearer {
        /// The authorization server.
        issuer: String,
        /// What the token allows.
        scopes: Vec<String>,
        /// The SHA-256 of the token, in hex.
        fingerprint: String,
        /// When the token expires, in Unix seconds.
        expires_at: u64,
    },
}

impl Principal {
    /// A principal of this name and credential, of which nothing more is known.
    pub fn new(name: impl Into<String>, credential: Credential) -> Self {
        Self {
            name: name.into(),
            tenant: None,
            groups: Vec::new(),
            claims: Map::new(),
            subject: None,
            capability: None,
            credential,
        }
    }

    /// A principal that has not authenticated.
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, Credential::None)
    }

    /// The process at the other end of standard input and output.
    pub fn stdio() -> Self {
        Self::new(STDIO, Credential::Process)
    }

    /// The same principal with the capability that it presented.
    #[must_use]
    pub fn with_capability(mut self, capability: Option<PresentedToken>) -> Self {
        self.capability = capability;
        self
    }

    /// Whether the principal has shown a name. A capability alone does not.
    #[must_use]
    pub const fn is_authenticated(&self) -> bool {
        !matches!(self.credential, Credential::None | Credential::Unix { .. })
    }

    /// What MCP sessions and cached admissions are owned by: the name, and before it the subject of
    /// a presented capability. The caller checks a capability before it relies on this.
    pub fn owner_id(&self) -> String {
        match &self.capability {
            None => self.name.clone(),
            // SECURITY: the key comes first, so that no name can look like another owner.
            Some(capability) => format!("{}|{}", capability.subject, self.name),
        }
    }
}

/// The most bytes of a name, a tenant or a group in what is signed; a longer one is told by its hash.
const MAX_NAME: usize = 256;
/// The most groups in what is signed; of more, the first.
const MAX_GROUPS: usize = 32;

/// Who calls, as receipts and requests for approval tell it. Nothing else of a principal is signed.
// Members stand in canonical order, so that the writer need not sort them on every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPrincipal<'a> {
    /// Its groups, as far as there is room for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Cow<'a, str>>,
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Cow<'a, str>>,
}

impl NamedPrincipal<'_> {
    /// The member of a receipt's metadata.
    pub const METADATA_MEMBER: &'static str = "principal";

    /// The same without the principal that it was taken from.
    pub fn into_owned(self) -> NamedPrincipal<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        NamedPrincipal {
            groups: self.groups.into_iter().map(own).collect(),
            name: own(self.name),
            tenant: self.tenant.map(own),
        }
    }
}

impl Principal {
    /// The principal as receipts tell it; none for one that has not shown a name.
    pub fn named(&self) -> Option<NamedPrincipal<'_>> {
        let bounded = |name| name_or_hash(name, MAX_NAME);
        self.is_authenticated().then(|| NamedPrincipal {
            groups: self.groups.iter().take(MAX_GROUPS).map(|group| bounded(group)).collect(),
            name: bounded(&self.name),
            tenant: self.tenant.as_deref().map(bounded),
        })
    }
}

impl fmt::Display for NamedPrincipal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(tenant) = &self.tenant {
            write!(f, ", tenant {tenant}")?;
        }
        if !self.groups.is_empty() {
            write!(f, ", groups {}", self.groups.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Principal {
    // Claims may hold anything, also secrets and names of people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal")
            .field("name", &self.name)
            .field("tenant", &self.tenant)
            .field("subject", &self.subject)
            .field("credential", &self.credential)
            .finish_non_exhaustive()
    }
}

impl Default for Principal {
    fn default() -> Self {
        Self::anonymous()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::capability::{CapabilityToken, ChioScope, Validity};
    use crate::crypto::Keypair;

    #[test]
    fn an_owner_is_named_by_its_name_and_the_subject_of_its_capability_not_by_its_token() {
        let key = |seed| Keypair::from_seed(&[seed; 32]).public_key().clone();
        let capability = |id: &str, subject: u8| {
            let (scope, validity) =
                (ChioScope::default(), Validity { issued_at: 1, expires_at: 2 });
            let token = CapabilityToken::draft(id, key(1), key(subject), scope, validity);
            Some(PresentedToken::from(token))
        };
        let bearer =
            |fingerprint: &str| Credential::StaticBearer { fingerprint: fingerprint.to_owned() };
        let alice = |token: &str| Principal::new("alice", bearer(token));
        assert_eq!(alice("old").owner_id(), alice("new").owner_id());
        assert_ne!(alice("old").owner_id(), Principal::anonymous().owner_id());
        let with = |id, subject| Principal::anonymous().with_capability(capability(id, subject));
        assert_eq!(with("cap-1", 2).owner_id(), with("cap-2", 2).owner_id());
        assert_ne!(with("cap-1", 2).owner_id(), with("cap-1", 3).owner_id());
        assert_ne!(with("cap-1", 2).owner_id(), Principal::anonymous().owner_id());
        let spoofed = format!("anonymous|{}", key(2));
        assert_ne!(with("cap-1", 2).owner_id(), Principal::new(spoofed, bearer("t")).owner_id());
    }

    #[test]
    fn what_is_signed_of_a_principal_is_its_name_tenant_and_groups_within_bounds() {
        assert_eq!(Principal::anonymous().named(), None);
        let mut alice = Principal::stdio();
        alice.name = "alice".to_owned();
        alice.claims.insert("email".to_owned(), json!("alice@example.com"));
        assert_eq!(json!(alice.named()), json!({"name": "alice"}));
        alice.tenant = Some("acme".to_owned());
        alice.groups = vec!["dev".to_owned(), "ops".to_owned()];
        let named = alice.named().unwrap();
        assert_eq!(
            json!(named),
            json!({"groups": ["dev", "ops"], "name": "alice", "tenant": "acme"})
        );
        assert_eq!(named.to_string(), "alice, tenant acme, groups dev, ops");
        let read: NamedPrincipal<'_> = serde_json::from_value(json!(named)).unwrap();
        assert_eq!(read, named);
        alice.name = "a".repeat(10_000);
        alice.groups = vec!["g".repeat(10_000); 1000];
        let named = alice.named().unwrap();
        assert!(named.name.starts_with("sha256:"), "{named:?}");
        assert!(json!(named).to_string().len() < 10_000);
        assert_eq!(named.groups.len(), 32);
    }

    #[test]
    fn only_a_credential_that_names_somebody_authenticates() {
        let unix = Credential::Unix { user: Some(0), process: None };
        let oauth = Credential::OauthBearer {
            issuer: String::new(),
            scopes: Vec::new(),
            fingerprint: String::new(),
            expires_at: 0,
        };
        for (credential, expected) in [
            (Credential::None, false),
            (unix, false),
            (Credential::Process, true),
            (Credential::StaticBearer { fingerprint: String::new() }, true),
            (oauth, true),
        ] {
            assert_eq!(Principal::new("a", credential).is_authenticated(), expected);
        }
    }
}
