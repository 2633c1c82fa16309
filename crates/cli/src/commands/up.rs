//! `chio up`: the product on its embedded defaults.

mod agent;
mod welcome;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use chio_a2a_edge::A2aEdgeConfig;
use chio_kernel::SystemClock;
use chio_mcp_edge::McpOptions;
use chio_native_edge::{Endpoint, NativeListener};
use chio_store::{OpenStore, StoreUrl};
use tokio_util::sync::CancellationToken;

use super::native::SOCKET;
use crate::config::DEFAULT_LISTEN;
use crate::endpoint_file::{EndpointFile, Kept};
use crate::http_door::{Access, Listener, Taken};
use crate::io::Io;
use crate::live;
use crate::outcome::Outcome;
use crate::policy_args::PolicyArgs;
use crate::servers::ToolServer;
use crate::serving::{Served, Setup, listen, run_server, shutdown_on_signal};
use crate::store_args::DEFAULT_FOLDER;
use crate::trust::TrustArgs;

/// How another address is chosen.
const CHOOSE: &str = "`chio up --listen 127.0.0.1:0` takes a free port";

const HELP: &str = "\
Starts a kernel with the demo tools, behind MCP and A2A over HTTP and the native socket. State is
kept in .chio: the authority that issues tokens, the kernel's key, the receipt log, and a demo agent
with a token for the demo tools. Whoever is on this machine may come in over HTTP, as the demo agent.
Leave it running and call it from another terminal; the commands to do so are printed, and then a line
for each call. Calls that need approval wait until `chio approvals` answers them.

Calls are judged by --policy; a change of its files takes effect within seconds, and a broken change
is told and changes nothing. Where the policy has default capabilities, the demo agent gets those.

Examples:
  chio up --data /tmp/chio-demo
  chio up --listen 127.0.0.1:0
  chio up --policy policy.yaml --shadow-policy strict";

/// Run a kernel with demo tools, state in .chio
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Keep state in this folder
    #[arg(long, value_name = "DIR", default_value = DEFAULT_FOLDER)]
    data: PathBuf,
    /// Where MCP and A2A are served; only on this machine, and port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = DEFAULT_LISTEN)]
    listen: SocketAddr,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    trust: TrustArgs,
}

/// The doors, before anybody is let in.
struct Doors {
    http: Listener,
    native: NativeListener,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let folder = io.folder.join(&args.data);
    let url = StoreUrl::Sqlite(folder.clone());
    let trust = args.trust.read(io, Vec::new())?;
    run_server(async {
        let shutdown = shutdown_on_signal()?;
        let policies = args.policy.load(io).await?;
        // Doors are tried before a kernel starts, so that one that is refused leaves no trace.
        let taken = Taken { choose: CHOOSE, data: Some(&folder) };
        let http = Listener::bind(args.listen, None, taken).await?;
        let store = OpenStore::open(&url, Arc::new(SystemClock::default()))?;
        let native = listen(&Endpoint::Unix(folder.join(SOCKET))).await?;
        let doors = Doors { http, native };
        let (sink, receipts) = live::channel();
        let setup = Setup::new(store, vec![ToolServer::demo(&url)], policies);
        let setup = Setup { trust, receipts: Some(sink), serves_mcp: true, ..setup };
        let mut served = Served::start(setup).await?;
        let agent = agent::ready(io, &served, &args.data).await?;
        let servers = served.servers.ids.clone();
        let otherwise = || Some(agent::every_demo_tool());
        served.mcp(agent.anonymous(), otherwise(), McpOptions::new(servers.clone()))?;
        let mut options = A2aEdgeConfig::new(servers, doors.http.base());
        options.http_json = true;
        served.a2a(agent.anonymous(), otherwise(), options)?;
        let kept = reachable(io, &args.data, &doors, &served)?;
        welcome::print(io, args, &served, (&agent.tokens, &doors.http))?;
        io.flush()?;
        let until = shutdown.clone();
        let serving = serve(&served, doors, shutdown)?;
        receipts.print_during(io, served.serve(serving, &until)).await?;
        drop(kept);
        io.say("ended: everything that ran is in the log")
    })?;
    Ok(Outcome::Well)
}

/// Tells other commands where this process can be reached.
fn reachable(io: &Io<'_>, data: &Path, doors: &Doors, served: &Served) -> Result<Kept> {
    let socket = std::path::absolute(io.folder.join(data).join(SOCKET));
    let socket = socket.context("cannot tell where the socket is")?;
    let file = EndpointFile {
        mcp: doors.http.url(),
        native: Some(Endpoint::Unix(socket).to_string()),
        token: None,
        servers: served.servers.ids.clone(),
        process: std::process::id(),
    };
    file.write_in(io, data)
}

/// Both doors, until they close.
fn serve(
    served: &Served,
    doors: Doors,
    shutdown: CancellationToken,
) -> Result<impl Future<Output = ()> + use<>> {
    let (native, edges) = (served.native(None)?, served.edges());
    let until = shutdown.clone();
    Ok(async move {
        let over_http = doors.http.serve(edges, Access::default(), until);
        tokio::join!(over_http, doors.native.serve(native, shutdown));
    })
}
