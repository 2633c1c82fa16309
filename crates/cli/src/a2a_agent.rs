//! An A2A agent that is used as a tool server: where it is, what is expected of it, and what it is
//! shown. Options of the command line or a section of chio.yaml fill it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use chio_a2a_adapter::{A2aAdapter, A2aAdapterConfig, A2aPartnerPolicy, server_id_of};
use chio_core::capability::CapabilityToken;
use chio_core::crypto::PublicKey;
use chio_core::strict;
use chio_net::address::AddressPattern;
use chio_policy::own::Own;
use zeroize::Zeroizing;

use crate::duration;
use crate::files::shown;
use crate::io::Io;
use crate::store_args::StoreArgs;

/// The longest file with a secret or a certificate that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// An agent. Secrets stay in their files until they are needed.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "The agent")]
pub(crate) struct A2aAgent {
    /// The agent's base URL, or the URL of its card; https, or http on this machine
    #[arg(long, value_name = "URL")]
    pub(crate) target: Option<String>,
    /// The key that answers for the agent's manifest [default: the kernel's]
    #[arg(long, value_name = "KEY", requires = "target")]
    pub(crate) manifest_key: Option<String>,
    /// What the partner is called in errors and in the task registry
    #[arg(long, value_name = "NAME", requires = "target")]
    pub(crate) partner: Option<String>,
    /// Refuse the agent unless its interface is of this tenant
    #[arg(long, value_name = "TENANT", requires = "target")]
    pub(crate) required_tenant: Option<String>,
    /// Refuse the agent unless it has this skill; can be repeated
    #[arg(long, value_name = "ID", requires = "target")]
    pub(crate) require_skill: Vec<String>,
    /// Refuse the agent unless it asks for this security scheme; can be repeated
    #[arg(long, value_name = "NAME", requires = "target")]
    pub(crate) require_scheme: Vec<String>,
    /// Use only interfaces of this origin, and send credentials there and to a token endpoint there
    /// [default: any origin, and credentials only to that of the card]; can be repeated
    #[arg(long, value_name = "ORIGIN", requires = "target")]
    pub(crate) allow_origin: Vec<String>,
    /// Let connections go to this address that is not public, such as 10.0.0.0/8 or *.corp.example;
    /// can be repeated
    #[arg(long, value_name = "PATTERN", requires = "target")]
    pub(crate) allow_address: Vec<AddressPattern>,
    /// The file of a bearer token
    #[arg(long, value_name = "FILE", requires = "target")]
    pub(crate) bearer_file: Option<PathBuf>,
    /// A user for HTTP Basic, and the file of the password
    #[arg(long, value_name = "USER=FILE", value_parser = pair, requires = "target")]
    pub(crate) basic: Option<(String, String)>,
    /// A key that goes into the header of this name; can be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = pair, requires = "target")]
    pub(crate) api_key_header: Vec<(String, String)>,
    /// A key that goes into the query parameter of this name; can be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = pair, requires = "target")]
    pub(crate) api_key_query: Vec<(String, String)>,
    /// A key that goes into the cookie of this name; can be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = pair, requires = "target")]
    pub(crate) api_key_cookie: Vec<(String, String)>,
    /// A client for OAuth and OpenID Connect, and the file of its secret
    #[arg(long, value_name = "ID=FILE", value_parser = pair, requires = "target")]
    pub(crate) oauth_client: Option<(String, String)>,
    /// A scope to ask for; can be repeated
    #[arg(long, value_name = "SCOPE", requires = "oauth_client")]
    pub(crate) oauth_scope: Vec<String>,
    /// Where tokens are asked for [default: as the card says]
    #[arg(long, value_name = "URL", requires = "oauth_client")]
    pub(crate) oauth_token_endpoint: Option<String>,
    /// A header of every request, and the file of its value; can be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = pair, requires = "target")]
    pub(crate) header_file: Vec<(String, String)>,
    /// A query parameter of every request, and the file of its value; can be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = pair, requires = "target")]
    pub(crate) query_file: Vec<(String, String)>,
    /// A cookie of every request, and the file of its value; can be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = pair, requires = "target")]
    pub(crate) cookie_file: Vec<(String, String)>,
    /// Certificates that are trusted besides the system's
    #[arg(long, value_name = "FILE", requires = "target")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// The chain of our own certificate
    #[arg(long, value_name = "FILE", requires = "client_key", requires = "target")]
    pub(crate) client_cert: Option<PathBuf>,
    /// The key of our own certificate
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub(crate) client_key: Option<PathBuf>,
    /// A capability that the agent's own kernel has issued
    #[arg(long, value_name = "FILE", requires = "target")]
    pub(crate) capability: Option<PathBuf>,
    /// Where tasks are remembered [default: in the data directory]
    #[arg(long, value_name = "FILE", requires = "target")]
    pub(crate) task_registry: Option<PathBuf>,
    /// How long the agent may take for an answer [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_fine, requires = "target")]
    pub(crate) agent_timeout: Option<Duration>,
    /// Let callers ask agents of A2A 1.0 for the history of a task
    #[arg(long, requires = "target")]
    pub(crate) history_length: bool,
    /// Headers of every request.
    #[arg(skip)]
    pub(crate) header: Vec<(String, String)>,
    /// Query parameters of every request.
    #[arg(skip)]
    pub(crate) query: Vec<(String, String)>,
    /// Cookies of every request.
    #[arg(skip)]
    pub(crate) cookie: Vec<(String, String)>,
    /// Its name in grants, calls and receipts.
    #[arg(skip)]
    pub(crate) id: String,
    /// Where the paths begin.
    #[arg(skip)]
    pub(crate) folder: PathBuf,
    /// The key that `manifest_key` names.
    #[arg(skip)]
    pub(crate) manifest_public_key: Option<PublicKey>,
}

/// Reads `NAME=FILE`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=FILE".to_owned()),
    }
}

impl A2aAgent {
    /// The agent of the command line. Its tasks are remembered in the data directory by
    /// default.
    pub(crate) fn of_args(
        &self,
        io: &mut Io<'_>,
        id: Option<&String>,
        store: &StoreArgs,
    ) -> Result<Self> {
        let target = self.target.as_ref().ok_or_else(|| anyhow!("expected --target URL"))?;
        let id = id.cloned().or_else(|| server_id_of(target));
        let id = id.ok_or_else(|| {
            anyhow!("expected a URL such as https://agent.example.com as --target")
        })?;
        let key = self.manifest_key.as_ref();
        let key = key.map(|key| io.public_key("--manifest-key", key)).transpose()?;
        let agent = Self { id, manifest_public_key: key, ..self.clone() };
        Ok(agent.within(io.folder, store.location(io)?.data()))
    }

    /// The same with paths that begin in this folder, and with tasks remembered in the data
    /// directory by default.
    pub(crate) fn within(mut self, folder: &Path, data: Option<&Path>) -> Self {
        self.task_registry = match (self.task_registry, data) {
            (Some(file), _) => Some(folder.join(file)),
            (None, Some(data)) => {
                let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
                let name = self.id.chars().map(plain).collect::<String>();
                Some(data.join(format!("tasks-{name}.json")))
            }
            (None, None) => None,
        };
        folder.clone_into(&mut self.folder);
        self
    }

    /// Puts its files out of reach of every call, and what it is shown.
    pub(crate) fn keep_back(&self, own: &Own) {
        let pairs = [&self.api_key_header, &self.api_key_query, &self.api_key_cookie];
        let pairs = pairs.into_iter().flatten().chain(&self.basic).chain(&self.oauth_client);
        let pairs = pairs.map(|(_, file)| Path::new(file));
        let secrets = pairs.chain(self.bearer_file.as_deref()).chain(self.client_key.as_deref());
        for file in secrets {
            own.protect(&self.folder.join(file), true);
            // One that cannot be read is told when it is used.
            if let Ok(secret) = self.line(file) {
                own.withhold(&secret);
            }
        }
        let files = [&self.tls_ca, &self.client_cert, &self.capability, &self.task_registry];
        for file in files.into_iter().flatten() {
            own.protect(&self.folder.join(file), false);
        }
    }

    /// Finds out what it offers.
    pub(crate) async fn connect(&self, kernel: &PublicKey) -> Result<A2aAdapter> {
        let failed = || format!("the agent `{}` cannot be used", self.id);
        let config = self.config(kernel).with_context(failed)?;
        A2aAdapter::connect(config).await.map_err(anyhow::Error::from).with_context(failed)
    }

    fn config(&self, kernel: &PublicKey) -> Result<A2aAdapterConfig> {
        let key = self.manifest_public_key.as_ref().unwrap_or(kernel).to_hex();
        let target = self.target.as_deref().unwrap_or_default();
        let mut config = A2aAdapterConfig::new(target, key)
            .with_server_id(&self.id)
            .with_history_length_for_1_0(self.history_length);
        if let Some(policy) = self.partner_policy() {
            config = config.with_partner_policy(policy);
        }
        config = self.with_credentials(self.with_extras(config)?)?;
        if let Some(file) = &self.task_registry {
            config = config.with_task_registry_file(file);
        }
        if let Some(timeout) = self.agent_timeout {
            config = config.with_timeout(timeout);
        }
        for pattern in &self.allow_address {
            config = config.with_allowed_address(pattern.clone());
        }
        Ok(config)
    }

    /// Adds what goes along with every request.
    fn with_extras(&self, mut config: A2aAdapterConfig) -> Result<A2aAdapterConfig> {
        for (name, value) in &self.header {
            config = config.with_request_header(name, value);
        }
        for (name, file) in &self.header_file {
            config = config.with_request_header(name, self.line(file)?.as_str());
        }
        for (name, value) in &self.query {
            config = config.with_request_query(name, value);
        }
        for (name, file) in &self.query_file {
            config = config.with_request_query(name, self.line(file)?.as_str());
        }
        for (name, value) in &self.cookie {
            config = config.with_request_cookie(name, value);
        }
        for (name, file) in &self.cookie_file {
            config = config.with_request_cookie(name, self.line(file)?.as_str());
        }
        Ok(config)
    }

    /// Adds what the agent is shown where it asks.
    fn with_credentials(&self, mut config: A2aAdapterConfig) -> Result<A2aAdapterConfig> {
        if let Some(file) = &self.bearer_file {
            config = config.with_bearer_token(self.line(file)?.as_str());
        }
        if let Some((user, file)) = &self.basic {
            config = config.with_http_basic(user, self.line(file)?.as_str());
        }
        for (name, file) in &self.api_key_header {
            config = config.with_api_key_header(name, self.line(file)?.as_str());
        }
        for (name, file) in &self.api_key_query {
            config = config.with_api_key_query(name, self.line(file)?.as_str());
        }
        for (name, file) in &self.api_key_cookie {
            config = config.with_api_key_cookie(name, self.line(file)?.as_str());
        }
        if let Some((client_id, file)) = &self.oauth_client {
            config = config.with_oauth_client_credentials(client_id, self.line(file)?.as_str());
        }
        for scope in &self.oauth_scope {
            config = config.with_oauth_scope(scope);
        }
        if let Some(endpoint) = &self.oauth_token_endpoint {
            config = config.with_oauth_token_endpoint(endpoint);
        }
        if let Some(file) = &self.tls_ca {
            config = config.with_tls_root_ca_pem(self.text(file)?.as_str());
        }
        if let (Some(chain), Some(key)) = (&self.client_cert, &self.client_key) {
            let (chain, key) = (self.text(chain)?, self.text(key)?);
            config = config.with_mtls_client_auth_pem(chain.as_str(), key.as_str());
        }
        if let Some(file) = &self.capability {
            config = config.with_capability(self.read_capability(file)?);
        }
        Ok(config)
    }

    /// What the card has to state, if anything.
    fn partner_policy(&self) -> Option<A2aPartnerPolicy> {
        let lists = [&self.require_skill, &self.require_scheme, &self.allow_origin];
        let is_named = self.partner.is_some() || self.required_tenant.is_some();
        if !is_named && lists.iter().all(|list| list.is_empty()) {
            return None;
        }
        let mut policy = A2aPartnerPolicy::new(self.partner.clone().unwrap_or_default());
        if let Some(tenant) = &self.required_tenant {
            policy = policy.with_required_tenant(tenant);
        }
        for skill in &self.require_skill {
            policy = policy.require_skill(skill);
        }
        for scheme in &self.require_scheme {
            policy = policy.require_security_scheme(scheme);
        }
        for origin in &self.allow_origin {
            policy = policy.allow_interface_origin(origin);
        }
        Some(policy)
    }

    fn read_capability(&self, file: &Path) -> Result<CapabilityToken> {
        let value = strict::from_slice(self.text(file)?.as_bytes()).ok();
        let token = value.and_then(|value| serde_json::from_value(value).ok());
        token.ok_or_else(|| anyhow!("expected a capability token in {}", shown(file)))
    }

    /// The one line of a file with a secret.
    fn line(&self, file: impl AsRef<Path>) -> Result<Zeroizing<String>> {
        let file = file.as_ref();
        let text = self.text(file)?;
        let line = Zeroizing::new(text.trim().to_owned());
        if line.is_empty() {
            return Err(anyhow!("expected a secret in {}, found nothing", shown(file)));
        }
        Ok(line)
    }

    fn text(&self, file: &Path) -> Result<Zeroizing<String>> {
        let file = &self.folder.join(file);
        let read = || -> std::io::Result<Zeroizing<String>> {
            if fs::metadata(file)?.len() > MAX_FILE {
                return Err(std::io::Error::other("it is too long"));
            }
            fs::read_to_string(file).map(Zeroizing::new)
        };
        read().with_context(|| format!("cannot read {}", shown(file)))
    }
}
