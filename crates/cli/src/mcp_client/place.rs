//! Where an MCP endpoint is, and what it is shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};

use crate::access::read_token;
use crate::endpoint_file::{EndpointFile, ReadFile};
use crate::io::Io;
use crate::store_args::DEFAULT_FOLDER;

/// Where an MCP endpoint is, as options say it.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct PlaceArgs {
    /// The data directory of the process that is meant [default: .chio]
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    data: Option<PathBuf>,
    /// The URL of another endpoint, such as http://127.0.0.1:8931/mcp
    #[arg(long)]
    url: Option<String>,
    /// The file of the bearer token to send
    #[arg(long, value_name = "FILE", requires = "url")]
    bearer_file: Option<PathBuf>,
}

/// Where an MCP endpoint is, and what it is shown.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) bearer: Option<String>,
    /// The servers that it offers, where that is known.
    pub(crate) servers: Vec<String>,
    /// As whom calls are made without a token that was named, where that is known.
    pub(crate) caller: Option<String>,
    /// What the process says that works on the store; none where another endpoint was named.
    pub(super) said: Option<Arc<ReadFile>>,
}

impl PlaceArgs {
    /// The endpoint that was named, or that of the process that works on the store.
    pub(crate) fn find(&self, io: &mut Io<'_>) -> Result<Place> {
        if let Some(url) = &self.url {
            let bearer = match &self.bearer_file {
                Some(file) => Some(read_token(io, file)?.to_string()),
                None => None,
            };
            let caller = bearer.is_none().then(|| "a client without a token".to_owned());
            return Ok(Place { url: url.clone(), bearer, servers: Vec::new(), caller, said: None });
        }
        let data = self.data.as_deref().unwrap_or(Path::new(DEFAULT_FOLDER));
        let Some(said) = EndpointFile::read_in(&io.folder.join(data)) else {
            let data = data.display();
            bail!(
                "nothing runs on {data}: start it with `chio up` or `chio serve`, or name an \
                 endpoint with --url"
            );
        };
        let Some(url) = said.content.calls_here() else {
            let found = said.content.calls().unwrap_or_default();
            bail!(
                "expected a process that listens on loopback, found `{found}`: name it with --url, \
                 and its token with --bearer-file"
            );
        };
        let EndpointFile { token: bearer, servers, caller, .. } = said.content.clone();
        Ok(Place { url, bearer, servers, caller, said: Some(Arc::new(said)) })
    }
}
