//! What clients over HTTP have to show.

use std::env::{self, VarError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chio_core::capability::CapabilityToken;
use chio_core::crypto::random_bytes;
use chio_core::hash::sha256_hex;
use chio_net::auth::{Authenticator, OriginRules};
use chio_net::client::{ClientOptions, HttpClient};
use chio_net::jwt::{IssuerKeys, JwkSet, JwtVerifier, RefreshRules};
use zeroize::Zeroizing;

use crate::admission::Anonymous;
use crate::files::{self, is_dash, shown};
use crate::io::Io;

/// The variable that a token may be in.
const VARIABLE: &str = "CHIO_AUTH_TOKEN";
/// The file of the token that is made when the operator sets none, below the data directory.
const TOKEN_FILE: &str = "mcp.token";
/// The longest token file that is read, in bytes.
const MAX_TOKEN: u64 = 16 * 1024;
/// Anonymous clients get the capabilities of the policy.
const DEFAULT: &str = "default";

/// Options that say how clients over HTTP authenticate.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct AccessArgs {
    /// The file of the bearer token that clients must send, which may be in the variable
    /// CHIO_AUTH_TOKEN as well
    #[arg(long, value_name = "FILE", requires = "http")]
    auth_token_file: Option<PathBuf>,
    /// Let in every client on this machine, with what the policy hands out (`default`) or with
    /// exactly the capability in this file
    #[arg(
        long,
        value_name = "default|FILE",
        requires = "http",
        conflicts_with = "auth_token_file"
    )]
    anonymous: Option<String>,
    /// Let web pages of this origin call too; can be repeated
    #[arg(
        long,
        value_name = "https://HOST[:PORT]",
        requires = "http",
        value_parser = check_origin
    )]
    pub(crate) cors_origin: Vec<String>,
}

/// Checks the origin of web pages.
///
/// # Errors
/// With what was expected.
pub(crate) fn check_origin(text: &str) -> Result<String, String> {
    let rules = OriginRules::any_host().with_pages_of(text);
    let expected = || "expected an origin such as `https://app.example.com`".to_owned();
    rules.map(|_| text.to_owned()).ok_or_else(expected)
}

/// How clients authenticate, as it is configured.
#[derive(Debug, Clone, Default)]
pub(crate) enum AccessConfig {
    /// A token of the data directory's own, which is made when it is not there.
    #[default]
    OwnToken,
    /// Nothing: every client on this machine is anonymous.
    Nothing,
    /// As the command line says; the token of the data directory where it says nothing.
    Args(AccessArgs),
    /// Nothing: every client on this machine is anonymous, with the capabilities of the policy
    /// (`default`) or the one in this file.
    Anonymous(String),
    /// A bearer token of a file, each with the name of its principal, or a token of an
    /// authorization server.
    Tokens { files: Vec<(String, PathBuf)>, jwt: Option<JwtConfig> },
}

/// An authorization server whose tokens are accepted.
#[derive(Debug, Clone)]
pub(crate) struct JwtConfig {
    pub(crate) issuer: String,
    pub(crate) audience: String,
    /// What a token has to allow.
    pub(crate) scopes: Vec<String>,
    /// A file with the issuer's keys; they are fetched from the issuer when absent.
    pub(crate) keys_file: Option<PathBuf>,
}

/// How clients authenticate, with the tokens and keys that were read from files.
#[derive(Debug, Default)]
pub(crate) struct Access {
    pub(crate) authenticator: Authenticator,
    pub(crate) anonymous: Anonymous,
    /// A line for the log that says how clients authenticate.
    pub(crate) note: Option<String>,
    /// A token that commands on this machine may use.
    pub(crate) bearer: Option<Zeroizing<String>>,
    /// As whom they then call, in words.
    pub(crate) caller: Option<String>,
}

impl AccessConfig {
    /// Reads the files that it names; none when the token of the data directory is to be used.
    pub(crate) fn read(&self, io: &mut Io<'_>) -> Result<Option<Access>> {
        match self {
            Self::OwnToken => Ok(None),
            Self::Nothing => Ok(Some(Access::default())),
            Self::Args(args) => args.read(io),
            Self::Anonymous(value) => anonymous(io, value).map(Some),
            Self::Tokens { files, jwt } => {
                let mut access = Access::default();
                for (name, file) in files {
                    let token = read_token(io, file)?;
                    access = access
                        .with_token(io, &token, Some(name))
                        .with_context(|| format!("cannot take the token of `{name}`"))?;
                    // The first is for the commands of users who may read it here.
                    access.bearer.get_or_insert(token);
                    access.caller.get_or_insert_with(|| name.clone());
                }
                if let Some(jwt) = jwt {
                    let scopes = jwt.scopes.clone();
                    let verifier = jwt.verifier(io)?;
                    access.authenticator =
                        access.authenticator.with_jwt(verifier).with_scopes(scopes);
                }
                Ok(Some(access))
            }
        }
    }
}

impl JwtConfig {
    fn verifier(&self, io: &mut Io<'_>) -> Result<JwtVerifier> {
        let keys = match &self.keys_file {
            Some(file) => {
                let keys = JwkSet::from_slice(&io.read(file)?);
                IssuerKeys::fixed(keys.with_context(|| format!("cannot read {}", shown(file)))?)
            }
            None => {
                let client = HttpClient::new(ClientOptions::default())?;
                IssuerKeys::discovered(client, &self.issuer, RefreshRules::default())
            }
        };
        Ok(JwtVerifier::new([&self.audience]).with_issuer(&self.issuer, keys)?)
    }
}

impl AccessArgs {
    /// What clients have to show, if anything was set.
    fn read(&self, io: &mut Io<'_>) -> Result<Option<Access>> {
        if let Some(value) = &self.anonymous {
            return anonymous(io, value).map(Some);
        }
        if let Some(file) = &self.auth_token_file {
            let token = read_token(io, file)?;
            return Access::default().with_token(io, &token, None).map(Some);
        }
        match env::var(VARIABLE) {
            Ok(token) => Access::default()
                .with_token(io, &Zeroizing::new(token), None)
                .map(Some)
                .with_context(|| format!("cannot take the variable {VARIABLE}")),
            Err(VarError::NotUnicode(_)) => bail!("expected text in the variable {VARIABLE}"),
            Err(VarError::NotPresent) => Ok(None),
        }
    }
}

impl Access {
    /// The token of the data directory, which is made when it is not there.
    pub(crate) fn own(io: &mut Io<'_>, data: Option<&Path>) -> Result<Self> {
        let Some(data) = data else {
            bail!(
                "expected a data directory for the token of clients, found none: name one, or the \
                 clients that are accepted"
            );
        };
        let file = data.join(TOKEN_FILE);
        let token = own_token(io, &file)?;
        let note = format!(
            "clients send `Authorization: Bearer TOKEN`; the token is in {}",
            file.display()
        );
        let access = Self::default().with_token(io, &token, None)?;
        let caller = Some(format!("the holder of {}", file.display()));
        Ok(Self { note: Some(note), bearer: Some(token), caller, ..access })
    }

    /// The same, and a token of a principal, whose name is derived from the token if absent.
    fn with_token(mut self, io: &Io<'_>, token: &str, name: Option<&str>) -> Result<Self> {
        io.own.withhold(token);
        let derived = Authenticator::default_principal(token);
        let authenticator = std::mem::take(&mut self.authenticator);
        self.authenticator = authenticator.with_token(name.unwrap_or(&derived), token)?;
        Ok(self)
    }
}

/// Every client, with the capabilities of the policy or the one in a file.
fn anonymous(io: &mut Io<'_>, value: &str) -> Result<Access> {
    let anonymous = if value == DEFAULT {
        Anonymous::Principal
    } else {
        let token: CapabilityToken = io.read_json(Path::new(value), "a capability token")?;
        Anonymous::Token(token.into())
    };
    let caller = Some("a client without a token".to_owned());
    Ok(Access { anonymous, caller, ..Access::default() })
}

/// Reads the one line of a token file.
pub(crate) fn read_token(io: &mut Io<'_>, file: &Path) -> Result<Zeroizing<String>> {
    if !is_dash(file) {
        io.open_secret(file)?;
    }
    let bytes = Zeroizing::new(io.read_at_most(file, MAX_TOKEN)?);
    let text = std::str::from_utf8(&bytes).map(str::trim);
    let text = text.with_context(|| format!("{} is not a token file", shown(file)))?;
    io.own.protect(&io.folder.join(file), true);
    Ok(Zeroizing::new(text.to_owned()))
}

/// The token in this file, which is made when it is not there.
fn own_token(io: &mut Io<'_>, file: &Path) -> Result<Zeroizing<String>> {
    if !io.folder.join(file).exists() {
        let token = Zeroizing::new(sha256_hex(&random_bytes::<32>()));
        let line = Zeroizing::new(format!("{}\n", *token));
        match io.write_file(file, line.as_bytes(), files::Access::Private, false) {
            Ok(()) => return Ok(token),
            // Another process may have been faster; its token is as good.
            Err(_) if io.folder.join(file).exists() => {}
            Err(error) => return Err(error),
        }
    }
    read_token(io, file)
}
