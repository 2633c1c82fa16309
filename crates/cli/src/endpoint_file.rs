//! Where the process that works on a store can be reached: a file for other commands to read. The
//! process holds a lock on it as long as it listens, so what a crash leaves is told apart.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Result;
use chio_net::address::is_this_machine;
use serde::{Deserialize, Serialize};

use crate::io::Io;
use crate::text;

/// Its name, below the data directory.
const NAME: &str = "endpoint.json";
/// The edge by which commands call tools.
pub(crate) const CALLS: &str = "mcp";
/// The longest file that is read, in bytes.
const MAX_LEN: u64 = 1 << 20;

/// Where a process can be reached. The token in it is for users who may read the file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndpointFile {
    /// The bearer token of the edge by which commands call tools, where one is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// As whom commands call tools, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) caller: Option<String>,
    /// The tool servers that are offered, in order.
    #[serde(default)]
    pub(crate) servers: Vec<String>,
    /// The process id.
    pub(crate) process: u32,
    /// The URL or endpoint of each edge, by its name.
    #[serde(flatten)]
    pub(crate) edges: BTreeMap<String, String>,
}

/// A file that was read, and stays open to see whether its process still holds it.
pub(crate) struct ReadFile {
    pub(crate) content: EndpointFile,
    file: File,
}

impl EndpointFile {
    /// A file of this process, without edges.
    pub(crate) fn new(servers: Vec<String>) -> Self {
        let (process, edges) = (std::process::id(), BTreeMap::new());
        Self { token: None, caller: None, servers, process, edges }
    }

    /// The file in a data directory, if it can be read.
    pub(crate) fn read_in(data: &Path) -> Option<ReadFile> {
        let mut file = File::open(data.join(NAME)).ok()?;
        let mut bytes = Vec::new();
        file.by_ref().take(MAX_LEN).read_to_end(&mut bytes).ok()?;
        Some(ReadFile { content: serde_json::from_slice(&bytes).ok()?, file })
    }

    /// The file of a process that runs.
    pub(crate) fn running_in(data: &Path) -> Option<Self> {
        Self::read_in(data).filter(ReadFile::is_held).map(|read| read.content)
    }

    /// The URL by which commands call tools.
    pub(crate) fn calls(&self) -> Option<&str> {
        self.edges.get(CALLS).map(String::as_str)
    }

    /// The URL by which commands of this machine call tools; none where it is not on loopback.
    pub(crate) fn calls_here(&self) -> Option<String> {
        let (url, address) = (self.calls()?, self.address()?);
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let here = SocketAddr::new(ip, address.port()).to_string();
        is_this_machine(ip).then(|| url.replacen(&address.to_string(), &here, 1))
    }

    /// The address by which commands call tools.
    fn address(&self) -> Option<SocketAddr> {
        self.calls()?.strip_prefix("http://")?.split('/').next()?.parse().ok()
    }

    /// Whether the process listens at this address.
    pub(crate) fn is_at(&self, address: SocketAddr) -> bool {
        self.address() == Some(address)
    }

    /// Writes it into a data directory, until what is returned is dropped. It appears there right
    /// after `listen`.
    pub(crate) fn write_in(
        self,
        io: &Io<'_>,
        data: &Path,
        listen: impl FnOnce() -> Result<()>,
    ) -> Result<WrittenFile> {
        let file = io.write_locked(&data.join(NAME), text::json(&self)?.as_bytes(), listen)?;
        Ok(WrittenFile { data: io.folder.join(data), written: self, _lock: file })
    }
}

impl ReadFile {
    /// Whether the process that wrote it still holds it.
    pub(crate) fn is_held(&self) -> bool {
        match self.file.try_lock_shared() {
            Ok(()) => {
                let _ = self.file.unlock();
                false
            }
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(_)) => false,
        }
    }
}

/// A file that is removed when this is dropped, unless another process has written it since.
pub(crate) struct WrittenFile {
    data: PathBuf,
    written: EndpointFile,
    _lock: File,
}

impl Drop for WrittenFile {
    fn drop(&mut self) {
        if EndpointFile::read_in(&self.data).is_some_and(|read| read.content == self.written) {
            let _ = fs::remove_file(self.data.join(NAME));
        }
    }
}
