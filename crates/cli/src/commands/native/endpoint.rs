//! Where a native kernel is called.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use chio_edge::Endpoint;
use chio_native_edge::NativeClient;

use crate::address;
use crate::config::NATIVE_SOCKET;
use crate::io::Io;
use crate::store_args::DEFAULT_FOLDER;

/// Where the kernel listens.
#[derive(Debug, clap::Args)]
pub(super) struct EndpointArgs {
    /// The Unix socket that the kernel listens at [default: .chio/native.sock]
    #[arg(long, value_name = "PATH", conflicts_with = "tcp")]
    unix: Option<PathBuf>,
    /// The TCP address that the kernel listens at
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = address::parse)]
    tcp: Option<SocketAddr>,
}

impl EndpointArgs {
    /// Connects.
    pub(super) async fn connect(&self, io: &Io<'_>) -> Result<NativeClient> {
        let endpoint = match (&self.unix, &self.tcp) {
            (_, Some(address)) => Endpoint::Tcp(*address),
            (Some(path), None) => Endpoint::Unix(io.folder.join(path)),
            (None, None) => {
                let path = io.folder.join(DEFAULT_FOLDER).join(NATIVE_SOCKET);
                if !path.exists() {
                    bail!(
                        "no kernel runs here: start one with `chio up`, or say where it listens \
                         with --unix or --tcp"
                    );
                }
                Endpoint::Unix(path)
            }
        };
        Ok(NativeClient::connect(&endpoint).await?)
    }
}
