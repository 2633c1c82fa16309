//! `chio up`: the product on its embedded defaults.

mod agent;
mod welcome;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use chio_store::Location;

use crate::access::AccessConfig;
use crate::address;
use crate::config::{DEFAULT_LISTEN, NATIVE_SOCKET, default_edges};
use crate::edge_args::VersionArgs;
use crate::io::Io;
use crate::listeners::ListenerConfig;
use crate::runtime::{Plan, run_server, shutdown_on_signal};
use crate::serve_args::ServeArgs;
use crate::servers::demo;
use crate::store_args::DEFAULT_FOLDER;

/// How another address is chosen.
const CHOOSE: &str = "`chio up --listen 127.0.0.1:0` takes a free port";

const HELP: &str = "\
Starts a kernel with the demo tools, behind MCP and A2A over HTTP and the native socket. State is
kept in .chio: the authority that issues tokens, the kernel's key, the receipt log, and a demo agent
with a token for the demo tools. Every client on this machine may connect over HTTP, as the demo agent.
Leave it running and call it from another terminal; the commands to do so are printed, and then a line
for each call. Calls that need approval wait until `chio approvals` answers them.

Calls are judged by --policy; a change of its files takes effect within seconds, and a broken change
is told and changes nothing. Where the policy has default capabilities, the demo agent gets those.

Examples:
  chio up --data /tmp/chio-demo
  chio up --listen 9191
  chio up --policy policy.yaml --shadow-policy strict";

/// Run a kernel with demo tools, state in .chio
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Keep state in this folder
    #[arg(long, value_name = "DIR", default_value = DEFAULT_FOLDER)]
    data: PathBuf,
    /// Where MCP and A2A are served: an address or a port, only on this machine; port 0 takes a free
    /// one
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = address::parse, default_value_t = DEFAULT_LISTEN)]
    listen: SocketAddr,
    #[command(flatten)]
    version: VersionArgs,
    #[command(flatten)]
    serve: ServeArgs,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    args.serve.start_log();
    let folder = io.folder.join(&args.data);
    let location = Location::new(None, Some(folder.clone()), &folder);
    run_server(async {
        let shutdown = shutdown_on_signal()?;
        let listeners = vec![
            ListenerConfig::http(args.listen, AccessConfig::Nothing),
            ListenerConfig::socket(folder.join(NATIVE_SOCKET)),
        ];
        let mut edges = default_edges(&listeners);
        args.version.apply(&mut edges)?;
        let plan = Plan {
            servers: vec![demo::server(Some(&folder))],
            edges,
            listeners,
            ..args.serve.plan(io, location, CHOOSE)?
        };
        let (mut runtime, mut opening, receipts) = plan.start(io).await?;
        let agent = agent::ready(io, &runtime, &args.data).await?;
        for listener in &mut opening.listeners {
            listener.set_anonymous(agent.anonymous(), "the demo agent");
        }
        let mut served = opening.open(&mut runtime, Some(agent::every_demo_tool())).await?;
        served.listen(io, &runtime, true).await?;
        welcome::print(io, args, &runtime, &served, &agent.tokens)?;
        runtime.serve_and_tell(io, served, shutdown, receipts).await
    })
}
