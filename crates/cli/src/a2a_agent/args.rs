//! An A2A agent, as options describe it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use chio_net::address::AddressPattern;

use super::{A2aAgent, ApiKey, Expected, KeyPlace, OAuth, Shown};
use crate::duration;
use crate::io::Io;

/// Which agent, what its card has to say, and what it is shown.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "The agent")]
pub(crate) struct AgentArgs {
    /// The agent's base URL, or the URL of its card; https, or http on this machine
    #[arg(long, value_name = "URL")]
    pub(crate) target: Option<String>,
    /// The key that answers for the agent's manifest [default: the kernel's]
    #[arg(long, value_name = "KEY", requires = "target")]
    manifest_key: Option<String>,
    /// What the partner is called in errors and in the task registry
    #[arg(long, value_name = "NAME", requires = "target")]
    partner: Option<String>,
    /// Refuse the agent unless its interface is of this tenant
    #[arg(long, value_name = "TENANT", requires = "target")]
    required_tenant: Option<String>,
    /// Refuse the agent unless it has this skill; can be repeated
    #[arg(long, value_name = "ID", requires = "target")]
    require_skill: Vec<String>,
    /// Refuse the agent unless it asks for this security scheme; can be repeated
    #[arg(long, value_name = "NAME", requires = "target")]
    require_scheme: Vec<String>,
    /// Use only interfaces of this origin; can be repeated
    #[arg(long, value_name = "ORIGIN", requires = "target")]
    allow_origin: Vec<String>,
    /// Let connections go to this address that is not public, such as 10.0.0.0/8 or *.corp.example;
    /// can be repeated
    #[arg(long, value_name = "PATTERN", requires = "target")]
    allow_address: Vec<AddressPattern>,
    /// The file of a bearer token
    #[arg(long, value_name = "FILE", requires = "target")]
    bearer_file: Option<PathBuf>,
    /// A user for HTTP Basic, and the file of the password
    #[arg(long, value_name = "USER=FILE", value_parser = pair, requires = "target")]
    basic: Option<(String, String)>,
    /// A key that goes into the header of this name; can be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = pair, requires = "target")]
    api_key_header: Vec<(String, String)>,
    /// A key that goes into the query parameter of this name; can be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = pair, requires = "target")]
    api_key_query: Vec<(String, String)>,
    /// A key that goes into the cookie of this name; can be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = pair, requires = "target")]
    api_key_cookie: Vec<(String, String)>,
    /// A client for OAuth and OpenID Connect, and the file of its secret
    #[arg(long, value_name = "ID=FILE", value_parser = pair, requires = "target")]
    oauth_client: Option<(String, String)>,
    /// A scope to ask for; can be repeated
    #[arg(long, value_name = "SCOPE", requires = "oauth_client")]
    oauth_scope: Vec<String>,
    /// Where tokens are asked for [default: as the card says]
    #[arg(long, value_name = "URL", requires = "oauth_client")]
    oauth_token_endpoint: Option<String>,
    /// A header of every request; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, requires = "target")]
    header: Vec<(String, String)>,
    /// A query parameter of every request; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, requires = "target")]
    query: Vec<(String, String)>,
    /// A cookie of every request; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, requires = "target")]
    cookie: Vec<(String, String)>,
    /// Certificates that are trusted besides the system's
    #[arg(long, value_name = "FILE", requires = "target")]
    tls_ca: Option<PathBuf>,
    /// The chain of our own certificate
    #[arg(long, value_name = "FILE", requires = "client_key", requires = "target")]
    client_cert: Option<PathBuf>,
    /// The key of our own certificate
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
    /// A capability that the agent's own kernel has issued
    #[arg(long, value_name = "FILE", requires = "target")]
    capability: Option<PathBuf>,
    /// Where tasks are remembered [default: in memory, or beside the store]
    #[arg(long, value_name = "FILE", requires = "target")]
    task_registry: Option<PathBuf>,
    /// How long the agent may take for an answer [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_fine, requires = "target")]
    agent_timeout: Option<Duration>,
    /// Let callers ask agents of A2A 1.0 for the history of a task
    #[arg(long, requires = "target")]
    history_length: bool,
}

/// Reads `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        // The value may be a secret, and so may a text without `=`.
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

impl AgentArgs {
    /// The agent, whose name is this one if somebody gave it one.
    pub(crate) fn agent(&self, io: &mut Io<'_>, id: Option<&String>) -> Result<A2aAgent> {
        let target = self.target.clone().ok_or_else(|| anyhow!("expected --target URL"))?;
        let id = id.cloned().or_else(|| A2aAgent::name_of(&target));
        let id = id.ok_or_else(|| {
            anyhow!("expected a URL such as https://agent.example.com as --target")
        })?;
        let manifest_key = self
            .manifest_key
            .as_ref()
            .map(|key| io.public_key("--manifest-key", key))
            .transpose()?;
        Ok(A2aAgent {
            id,
            target,
            manifest_key,
            expected: Expected {
                partner: self.partner.clone(),
                tenant: self.required_tenant.clone(),
                skills: self.require_skill.clone(),
                schemes: self.require_scheme.clone(),
                origins: self.allow_origin.clone(),
            },
            shown: self.shown(io),
            task_registry: self.task_registry.as_ref().map(|file| io.folder.join(file)),
            timeout: self.agent_timeout,
            addresses: self.allow_address.clone(),
            history_length: self.history_length,
        })
    }

    fn shown(&self, io: &Io<'_>) -> Shown {
        let file = |file: &PathBuf| io.folder.join(file);
        let named = |(name, file): &(String, String)| (name.clone(), io.folder.join(file));
        let key = |place| {
            move |(name, file): &(String, String)| ApiKey {
                place,
                name: name.clone(),
                file: io.folder.join(file),
            }
        };
        let headers = self.api_key_header.iter().map(key(KeyPlace::Header));
        let queries = self.api_key_query.iter().map(key(KeyPlace::Query));
        let cookies = self.api_key_cookie.iter().map(key(KeyPlace::Cookie));
        Shown {
            bearer: self.bearer_file.as_ref().map(file),
            basic: self.basic.as_ref().map(named),
            api_keys: headers.chain(queries).chain(cookies).collect(),
            oauth: self.oauth_client.as_ref().map(|client| {
                let (client_id, secret) = named(client);
                let scopes = self.oauth_scope.clone();
                let token_endpoint = self.oauth_token_endpoint.clone();
                OAuth { client_id, secret, scopes, token_endpoint }
            }),
            headers: self.header.clone(),
            query: self.query.clone(),
            cookies: self.cookie.clone(),
            ca: self.tls_ca.as_ref().map(file),
            client: self
                .client_cert
                .as_ref()
                .zip(self.client_key.as_ref())
                .map(|(chain, key)| (io.folder.join(chain), io.folder.join(key))),
            capability: self.capability.as_ref().map(file),
        }
    }
}
