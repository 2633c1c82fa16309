//! Where the process that works on a store can be reached: a file for other commands to read.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::files::Access;
use crate::io::Io;
use crate::text;

/// Its name, below the data directory.
const NAME: &str = "endpoint.json";
/// The edge by which commands call tools.
pub(crate) const CALLS: &str = "mcp";
/// How long a process may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);

/// Where a process can be reached. The token in it is for users who may read the file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndpointFile {
    /// The bearer token of the edge by which commands call tools, where one is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// The tool servers that are offered, in order.
    #[serde(default)]
    pub(crate) servers: Vec<String>,
    /// The process id.
    pub(crate) process: u32,
    /// The URL or endpoint of each edge, by its name.
    #[serde(flatten)]
    pub(crate) edges: BTreeMap<String, String>,
}

impl EndpointFile {
    /// A file of this process, without edges.
    pub(crate) fn new(servers: Vec<String>) -> Self {
        Self { token: None, servers, process: std::process::id(), edges: BTreeMap::new() }
    }

    /// The file in a data directory, if it can be read.
    pub(crate) fn read_in(data: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(data.join(NAME)).ok()?).ok()
    }

    /// The URL by which commands call tools.
    pub(crate) fn calls(&self) -> Option<&str> {
        self.edges.get(CALLS).map(String::as_str)
    }

    /// The address by which commands call tools.
    fn address(&self) -> Option<SocketAddr> {
        self.calls()?.strip_prefix("http://")?.split('/').next()?.parse().ok()
    }

    /// Whether the process listens at this address.
    pub(crate) fn is_at(&self, address: SocketAddr) -> bool {
        self.address() == Some(address)
    }

    /// Whether a process listens where the file says.
    pub(crate) fn is_running(&self) -> bool {
        self.address().is_some_and(|at| TcpStream::connect_timeout(&at, CONNECT_TIMEOUT).is_ok())
    }

    /// Writes it into a data directory, until what is returned is dropped.
    pub(crate) fn write_in(self, io: &Io<'_>, data: &Path) -> Result<WrittenFile> {
        let file = data.join(NAME);
        io.write_file(&file, text::json(&self)?.as_bytes(), Access::Private, true)?;
        Ok(WrittenFile { data: io.folder.join(data), written: self })
    }
}

/// A file that is removed when this is dropped, unless another process has written it since.
pub(crate) struct WrittenFile {
    data: PathBuf,
    written: EndpointFile,
}

impl Drop for WrittenFile {
    fn drop(&mut self) {
        if EndpointFile::read_in(&self.data).as_ref() == Some(&self.written) {
            let _ = fs::remove_file(self.data.join(NAME));
        }
    }
}
