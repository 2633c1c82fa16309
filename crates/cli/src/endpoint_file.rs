//! Where the process that works on a store can be reached: a file for other commands to read.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::files::Access;
use crate::io::Io;
use crate::text;

/// Its name, below the store's folder.
const NAME: &str = "endpoint.json";

/// How long somebody may take to answer.
const PATIENCE: Duration = Duration::from_millis(200);

/// Where a process can be reached. The token in it is for whoever may read the file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndpointFile {
    /// The URL of MCP.
    pub(crate) mcp: String,
    /// The native endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) native: Option<String>,
    /// The bearer token, where one is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// The servers that are offered, in order.
    #[serde(default)]
    pub(crate) servers: Vec<String>,
    /// The process.
    pub(crate) process: u32,
}

impl EndpointFile {
    /// What stands in a store's folder, if it can be read.
    pub(crate) fn read_in(data: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(data.join(NAME)).ok()?).ok()
    }

    /// Whether somebody listens where it says.
    pub(crate) fn is_running(&self) -> bool {
        let place = self.mcp.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let address = place.and_then(|place| place.parse().ok());
        address.is_some_and(|address| TcpStream::connect_timeout(&address, PATIENCE).is_ok())
    }

    /// Writes it into a store's folder, until what is given back is dropped.
    pub(crate) fn write_in(self, io: &Io<'_>, data: &Path) -> Result<Kept> {
        let file = data.join(NAME);
        io.write_file(&file, text::json(&self)?.as_bytes(), Access::Private, true)?;
        Ok(Kept { data: io.folder.join(data), written: self })
    }
}

/// A file that goes when this is dropped, unless somebody else has written it since.
pub(crate) struct Kept {
    data: PathBuf,
    written: EndpointFile,
}

impl Drop for Kept {
    fn drop(&mut self) {
        if EndpointFile::read_in(&self.data).as_ref() == Some(&self.written) {
            let _ = fs::remove_file(self.data.join(NAME));
        }
    }
}
