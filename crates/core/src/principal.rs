//! The principal: who calls, from authentication to the session of a call.

use std::fmt;

use serde_json::{Map, Value};

use crate::capability::PresentedToken;
use crate::crypto::PublicKey;

/// The name of a principal that has not authenticated.
pub const ANONYMOUS: &str = "anonymous";
/// The name of the process at the other end of standard input and output.
pub const STDIO: &str = "stdio";

/// Who calls. Sessions, tasks and limits belong to a principal, never to the bytes of a token: a
/// token that is refreshed changes nothing.
#[derive(Clone, PartialEq)]
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
    /// operator. Without one, the token issuer decides.
    pub capability: Option<PresentedToken>,
    /// How the principal has authenticated.
    pub credential: Credential,
}

/// How a principal has authenticated. Tokens are represented by their SHA-256 only.
#[derive(Debug, Clone, PartialEq, Eq)]
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
