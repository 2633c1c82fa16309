//! An A2A agent that is used as a tool server: where it is, what is expected of it, and what it is
//! shown.

mod args;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use chio_a2a_adapter::{A2aAdapter, A2aAdapterConfig, A2aPartnerPolicy};
use chio_core::capability::CapabilityToken;
use chio_core::crypto::PublicKey;
use chio_core::strict;
use chio_net::address::AddressPattern;
use chio_store::StoreUrl;
use zeroize::Zeroizing;

pub(crate) use args::AgentArgs;

use crate::files::shown;
use crate::io::Io;
use crate::store_args::StoreArgs;

/// The longest file with a secret or a certificate that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// An agent, as files and options describe it.
#[derive(Debug, Clone, Default)]
pub(crate) struct A2aAgent {
    /// Its name in grants, calls and receipts.
    pub(crate) id: String,
    /// Its base URL, or the URL of its card.
    pub(crate) target: String,
    /// The key that answers for its manifest; the kernel's when absent.
    pub(crate) manifest_key: Option<PublicKey>,
    pub(crate) expected: Expected,
    pub(crate) shown: Shown,
    /// Where tasks are remembered; in memory when absent.
    pub(crate) task_registry: Option<PathBuf>,
    pub(crate) timeout: Option<Duration>,
    /// Addresses that are not public and may be reached all the same.
    pub(crate) addresses: Vec<AddressPattern>,
    /// Whether `history_length` may be asked of agents that speak 1.0.
    pub(crate) history_length: bool,
}

/// What the card has to say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    pub(crate) partner: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) skills: Vec<String>,
    pub(crate) schemes: Vec<String>,
    pub(crate) origins: Vec<String>,
}

/// What the agent is shown, where it asks. Secrets stay in their files until they are needed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown {
    pub(crate) bearer: Option<PathBuf>,
    /// A user and the file of the password.
    pub(crate) basic: Option<(String, PathBuf)>,
    pub(crate) api_keys: Vec<ApiKey>,
    pub(crate) oauth: Option<OAuth>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) cookies: Vec<(String, String)>,
    /// Authorities that are trusted besides those of the system.
    pub(crate) ca: Option<PathBuf>,
    /// A chain of certificates and its key.
    pub(crate) client: Option<(PathBuf, PathBuf)>,
    /// A capability that the agent's own kernel has issued.
    pub(crate) capability: Option<PathBuf>,
}

/// A key that an agent asks for by a name.
#[derive(Debug, Clone)]
pub(crate) struct ApiKey {
    pub(crate) place: KeyPlace,
    pub(crate) name: String,
    pub(crate) file: PathBuf,
}

/// Where a key is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    Header,
    Query,
    Cookie,
}

impl KeyPlace {
    /// The place of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "header" => Some(Self::Header),
            "query" => Some(Self::Query),
            "cookie" => Some(Self::Cookie),
            _ => None,
        }
    }
}

/// Client credentials.
#[derive(Debug, Clone)]
pub(crate) struct OAuth {
    pub(crate) client_id: String,
    pub(crate) secret: PathBuf,
    pub(crate) scopes: Vec<String>,
    pub(crate) token_endpoint: Option<String>,
}

impl A2aAgent {
    /// The name of an agent at this URL, when nobody says.
    pub(crate) fn name_of(target: &str) -> Option<String> {
        chio_a2a_adapter::server_id_of(target)
    }

    /// The same, with its tasks remembered beside the store unless somebody said where.
    pub(crate) fn beside(mut self, store: &StoreArgs, io: &Io<'_>) -> Result<Self> {
        if let (None, StoreUrl::Sqlite(folder)) = (&self.task_registry, store.url(io)?) {
            self.task_registry = Some(folder.join(registry_name(&self.id)));
        }
        Ok(self)
    }

    /// Finds out what it offers.
    pub(crate) async fn connect(self, kernel: PublicKey) -> Result<A2aAdapter> {
        let id = self.id.clone();
        let failed = || format!("the agent `{id}` cannot be used");
        let config = self.config(&kernel).with_context(failed)?;
        A2aAdapter::connect(config).await.map_err(anyhow::Error::from).with_context(failed)
    }

    fn config(self, kernel: &PublicKey) -> Result<A2aAdapterConfig> {
        let key = self.manifest_key.as_ref().unwrap_or(kernel).to_hex();
        let mut config = A2aAdapterConfig::new(&self.target, key).with_server_id(&self.id);
        config = self.expected.onto(config);
        config = self.shown.onto(config)?;
        if let Some(file) = &self.task_registry {
            config = config.with_task_registry_file(file);
        }
        if let Some(timeout) = self.timeout {
            config = config.with_timeout(timeout);
        }
        for pattern in self.addresses {
            config = config.with_allowed_address(pattern);
        }
        Ok(config.with_history_length_for_1_0(self.history_length))
    }
}

/// The file of an agent's tasks, below the store's folder.
pub(crate) fn registry_name(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("tasks-{}.json", id.chars().map(plain).collect::<String>())
}

impl Expected {
    fn onto(self, config: A2aAdapterConfig) -> A2aAdapterConfig {
        let nothing = self.partner.is_none()
            && self.tenant.is_none()
            && self.skills.is_empty()
            && self.schemes.is_empty()
            && self.origins.is_empty();
        if nothing {
            return config;
        }
        let mut policy = A2aPartnerPolicy::new(self.partner.unwrap_or_default());
        if let Some(tenant) = self.tenant {
            policy = policy.with_required_tenant(tenant);
        }
        for skill in self.skills {
            policy = policy.require_skill(skill);
        }
        for scheme in self.schemes {
            policy = policy.require_security_scheme(scheme);
        }
        for origin in self.origins {
            policy = policy.allow_interface_origin(origin);
        }
        config.with_partner_policy(policy)
    }
}

impl Shown {
    fn onto(self, mut config: A2aAdapterConfig) -> Result<A2aAdapterConfig> {
        for (name, value) in self.headers {
            config = config.with_request_header(name, value);
        }
        for (name, value) in self.query {
            config = config.with_request_query(name, value);
        }
        for (name, value) in self.cookies {
            config = config.with_request_cookie(name, value);
        }
        if let Some(file) = &self.bearer {
            config = config.with_bearer_token(line(file)?.as_str());
        }
        if let Some((user, file)) = &self.basic {
            config = config.with_http_basic(user, line(file)?.as_str());
        }
        for key in &self.api_keys {
            let secret = line(&key.file)?;
            config = match key.place {
                KeyPlace::Header => config.with_api_key_header(&key.name, secret.as_str()),
                KeyPlace::Query => config.with_api_key_query(&key.name, secret.as_str()),
                KeyPlace::Cookie => config.with_api_key_cookie(&key.name, secret.as_str()),
            };
        }
        if let Some(oauth) = self.oauth {
            let secret = line(&oauth.secret)?;
            config = config.with_oauth_client_credentials(&oauth.client_id, secret.as_str());
            for scope in oauth.scopes {
                config = config.with_oauth_scope(scope);
            }
            if let Some(endpoint) = oauth.token_endpoint {
                config = config.with_oauth_token_endpoint(endpoint);
            }
        }
        if let Some(file) = &self.ca {
            config = config.with_tls_root_ca_pem(text(file)?.as_str());
        }
        if let Some((chain, key)) = &self.client {
            config = config.with_mtls_client_auth_pem(text(chain)?.as_str(), text(key)?.as_str());
        }
        if let Some(file) = &self.capability {
            config = config.with_capability(capability(file)?);
        }
        Ok(config)
    }
}

fn capability(file: &Path) -> Result<CapabilityToken> {
    let value = strict::from_slice(text(file)?.as_bytes()).ok();
    let token = value.and_then(|value| serde_json::from_value(value).ok());
    token.ok_or_else(|| anyhow!("expected a capability token in {}", shown(file)))
}

/// The one line of a file with a secret.
fn line(file: &Path) -> Result<Zeroizing<String>> {
    let text = text(file)?;
    let line = Zeroizing::new(text.trim().to_owned());
    if line.is_empty() {
        return Err(anyhow!("expected a secret in {}, found nothing", shown(file)));
    }
    Ok(line)
}

fn text(file: &Path) -> Result<Zeroizing<String>> {
    let read = || -> std::io::Result<Zeroizing<String>> {
        if fs::metadata(file)?.len() > MAX_FILE {
            return Err(std::io::Error::other("it is too long"));
        }
        fs::read_to_string(file).map(Zeroizing::new)
    };
    read().with_context(|| format!("cannot read {}", shown(file)))
}
