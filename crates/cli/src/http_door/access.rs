//! Who may come in over HTTP.

use std::env::{self, VarError};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chio_core::capability::CapabilityToken;
use chio_core::crypto::random_bytes;
use chio_core::hash::sha256_hex;
use chio_net::peer::PeerAuthenticator;
use chio_store::StoreUrl;
use zeroize::Zeroizing;

use crate::admission::Anonymous;
use crate::files::{self, shown};
use crate::io::Io;

/// The variable that a token may be in.
const VARIABLE: &str = "CHIO_AUTH_TOKEN";
/// The file of the token that is made when nobody sets one, below the store's folder.
const TOKEN_FILE: &str = "mcp.token";
/// The longest token file that is read, in bytes.
const MAX_TOKEN: u64 = 16 * 1024;
/// What binds an anonymous caller to what the policy says.
const DEFAULT: &str = "default";

/// What callers over HTTP have to show.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct AccessArgs {
    /// The bearer token that clients must send; others on this machine can see it here, so prefer
    /// a file or the variable CHIO_AUTH_TOKEN
    #[arg(long, value_name = "TOKEN", requires = "http")]
    auth_token: Option<Secret>,
    /// The file of the bearer token that clients must send
    #[arg(long, value_name = "FILE", requires = "http", conflicts_with = "auth_token")]
    auth_token_file: Option<PathBuf>,
    /// Let in whoever is on this machine, with what the policy hands out (`default`) or with exactly
    /// the capability in this file
    #[arg(
        long,
        value_name = "default|FILE",
        requires = "http",
        conflicts_with_all = ["auth_token", "auth_token_file"]
    )]
    anonymous: Option<String>,
}

/// Who may come in.
#[derive(Debug, Default)]
pub(crate) struct Access {
    pub(crate) peers: PeerAuthenticator,
    pub(crate) anonymous: Anonymous,
    /// What a client has to be told.
    pub(crate) told: Option<String>,
    /// A token that commands on this machine may use.
    pub(crate) bearer: Option<Zeroizing<String>>,
}

/// A token on the command line, which is never printed.
#[derive(Clone)]
struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl AccessArgs {
    /// Who may come in, if anything was said about it.
    pub(crate) fn said(&self, io: &mut Io<'_>) -> Result<Option<Access>> {
        if let Some(said) = &self.anonymous {
            return anonymous(io, said).map(Some);
        }
        if let Some(Secret(token)) = &self.auth_token {
            return Access::default().with_token(token, None).map(Some);
        }
        if let Some(file) = &self.auth_token_file {
            let token = read_token(io, file)?;
            return Access::default().with_token(&token, None).map(Some);
        }
        match env::var(VARIABLE) {
            Ok(token) => Access::default()
                .with_token(&Zeroizing::new(token), None)
                .map(Some)
                .with_context(|| format!("cannot take the variable {VARIABLE}")),
            Err(VarError::NotUnicode(_)) => bail!("expected text in the variable {VARIABLE}"),
            Err(VarError::NotPresent) => Ok(None),
        }
    }
}

impl Access {
    /// A token of the store's own, which is made when it is not there.
    pub(crate) fn own(io: &mut Io<'_>, url: &StoreUrl) -> Result<Self> {
        let StoreUrl::Sqlite(folder) = url else {
            bail!("a store in memory keeps no token: say who may come in");
        };
        let file = folder.join(TOKEN_FILE);
        let token = own_token(io, &file)?;
        let told = format!(
            "clients send `Authorization: Bearer TOKEN`; the token is in {}",
            file.display()
        );
        let access = Self::default().with_token(&token, None)?;
        Ok(Self { told: Some(told), bearer: Some(token), ..access })
    }

    /// The same, and a token that stands for a principal; without a name, for its own hash.
    pub(crate) fn with_token(mut self, token: &str, name: Option<&str>) -> Result<Self> {
        let unnamed = PeerAuthenticator::default_principal(token);
        let peers = std::mem::take(&mut self.peers);
        self.peers = peers.with_token(name.unwrap_or(&unnamed), token)?;
        Ok(self)
    }
}

/// Whoever comes, with what was said.
pub(crate) fn anonymous(io: &mut Io<'_>, said: &str) -> Result<Access> {
    let anonymous = if said == DEFAULT {
        Anonymous::Principal
    } else {
        let token: CapabilityToken = io.read_json(Path::new(said), "a capability token")?;
        Anonymous::Token(token.into())
    };
    Ok(Access { anonymous, ..Access::default() })
}

/// Reads the one line of a token file.
pub(crate) fn read_token(io: &mut Io<'_>, file: &Path) -> Result<Zeroizing<String>> {
    let bytes = Zeroizing::new(io.read_at_most(file, MAX_TOKEN)?);
    let text = std::str::from_utf8(&bytes).map(str::trim);
    let text = text.with_context(|| format!("{} is not a token file", shown(file)))?;
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
