//! `chio native serve`: a kernel behind the native transport.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use chio_edge::{Endpoint, Settings};

use crate::address;
use crate::duration;
use crate::io::Io;
use crate::listeners::{Admits, ListenerConfig, SOCKET, Transport};
use crate::runtime::{EdgeConfig, Plan};
use crate::serve_args::ServeArgs;
use crate::servers::demo;
use crate::store_args::StoreArgs;

const HELP: &str = "\
Serves the demo tools until it is told to end (Ctrl-C), then finishes what runs and signs the last
checkpoint. Tokens of the store's own authority are accepted; name others with --trusted-issuer.
Calls that need approval wait for it: `chio approvals` answers them with the store's own approver
key; name others who may answer with --trusted-approver.

Calls are judged by --policy; a change of its files takes effect within seconds, and a broken change
is told and changes nothing. A subject that --peer names is issued the policy's default capabilities.

Examples:
  chio native serve --unix chio.sock
  chio native serve --tcp 127.0.0.1:0 --store memory:
  chio native serve --stdio --data .chio --peer agent.key
  chio native serve --unix chio.sock --policy policy.yaml --shadow-policy strict";

/// Run a kernel behind the native transport
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
#[command(group = clap::ArgGroup::new("listener").required(true).args(["stdio", "unix", "tcp"]))]
pub(crate) struct Args {
    /// Serve standard input and output
    #[arg(long)]
    stdio: bool,
    /// Listen at this Unix socket
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Listen at this TCP address; only loopback, and port 0 takes a free one
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = address::parse)]
    tcp: Option<SocketAddr>,
    #[command(flatten)]
    store: StoreArgs,
    /// Sign receipts with this key [default: a key of the store's own]
    #[arg(long, value_name = "FILE")]
    kernel_key: Option<PathBuf>,
    /// Another issuer whose tokens are accepted, by public key or key file; can be repeated
    #[arg(long, value_name = "KEY")]
    trusted_issuer: Vec<String>,
    #[command(flatten)]
    serve: ServeArgs,
    /// Every client is this subject, by public key or key file
    #[arg(long, value_name = "KEY")]
    peer: Option<String>,
    /// How long a tool may take [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    deadline: Option<u64>,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    args.serve.start_log();
    let kernel_key = match &args.kernel_key {
        Some(path) => Some(io.read_key(path)?),
        None => None,
    };
    let peer = match &args.peer {
        Some(text) => Some(io.public_key("--peer", text)?),
        None => None,
    };
    let unix = args.unix.as_ref().map(|path| Endpoint::Unix(io.folder.join(path)));
    let admits = Admits::Everyone(peer);
    let listener = match unix.or(args.tcp.map(Endpoint::Tcp)) {
        Some(endpoint) => ListenerConfig {
            name: SOCKET.to_owned(),
            transport: Transport::Socket { endpoint, admits },
        },
        None => ListenerConfig::stdio(admits),
    };
    let edge = EdgeConfig::new(&chio_native_edge::EDGE, Settings::default()).on(&listener.name);
    let location = args.store.location(io)?;
    let mut plan = Plan {
        servers: vec![demo::server(location.data())],
        listeners: vec![listener],
        edges: vec![EdgeConfig { announcement: "listening on ", ..edge }],
        kernel_key,
        ..args.serve.plan(io, location, "")?
    };
    plan.kernel.trusted_issuers = io.public_keys("--trusted-issuer", &args.trusted_issuer)?;
    if let Some(seconds) = args.deadline {
        plan.kernel.limits.deadline = Duration::from_secs(seconds);
    }
    plan.run(io)
}
