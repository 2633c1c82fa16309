//! `chio mcp serve`: one MCP server, behind Chio.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::Result;
use chio_mcp_edge::McpService;
use chio_store::StoreUrl;
use tokio_util::sync::CancellationToken;

use crate::admission::Anonymous;
use crate::edge_args::EdgeArgs;
use crate::http_door::{Access, AccessArgs, Listener, Taken};
use crate::io::Io;
use crate::outcome::Outcome;
use crate::policy_args::PolicyArgs;
use crate::server_name;
use crate::servers::{McpCommand, ToolServer};
use crate::serving::{Served, Setup, operator_log, run_server, shutdown_on_signal};
use crate::store_args::StoreArgs;
use crate::trust::TrustArgs;

/// Where MCP is served when nobody says.
const LISTEN: &str = "127.0.0.1:8931";
/// How another address is chosen.
const CHOOSE: &str = "`--http 127.0.0.1:0` takes a free port";

const HELP: &str = "\
Starts COMMAND, an MCP server that speaks on standard input and output, and serves all that it has:
over standard input and output for a client that starts commands, or over HTTP. Calls are judged by
--policy and leave receipts in the store, which `chio up` and others may use at the same time.

Over standard input and output, whoever started the process is the caller. Over HTTP, clients send
a bearer token; when none is set, one is made and kept in the store's folder (mcp.token). Clients
may also come with a capability of their own, in the header X-Chio-Capability. A caller is handed the
policy's default capabilities, or where it has none, one for everything that the server has.

Examples:
  chio mcp serve -- npx -y @modelcontextprotocol/server-filesystem .
  chio mcp serve --policy code-agent --server-id git -- uvx mcp-server-git
  chio mcp serve --http 127.0.0.1:0 --auth-token-file token.txt -- ./server.py
  chio mcp config --help         the configuration of clients that start commands";

/// Serve an MCP server through Chio, over standard input and output or HTTP
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Serve over HTTP at this address, on the path /mcp; port 0 takes a free one [default without
    /// a value: 127.0.0.1:8931]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = LISTEN)]
    http: Option<SocketAddr>,
    #[command(flatten)]
    access: AccessArgs,
    /// The server's name in grants, policies and receipts [default: by the command]
    #[arg(long, value_name = "ID", value_parser = server_name::check)]
    server_id: Option<String>,
    /// Let all sessions share one child, in place of one for each
    #[arg(long)]
    shared: bool,
    /// A variable for the server's environment; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    #[command(flatten)]
    edge: EdgeArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    trust: TrustArgs,
    /// The command that starts the server, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Reads `NAME=VALUE`.
fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        // The value may be a secret, and so may a text without `=`.
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// A door that is open, and who may come in by it.
enum Door {
    Stdio,
    Http(Box<(Listener, Access)>),
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let trust = args.trust.read(io, Vec::new())?;
    run_server(async {
        let shutdown = shutdown_on_signal()?;
        let log = operator_log();
        let policies = args.policy.load(io).await?;
        let url = args.store.url(io)?;
        let said = if args.http.is_some() { args.access.said(io)? } else { None };
        // The door is tried first: a kernel that nobody can reach need not start.
        let listener = match args.http {
            Some(address) => Some(Listener::bind(address, said.as_ref(), args.taken(&url)).await?),
            None => None,
        };
        let store = args.store.open(io)?;
        let mut door = match (listener, said) {
            (None, _) => Door::Stdio,
            (Some(listener), Some(access)) => Door::Http(Box::new((listener, access))),
            (Some(listener), None) => Door::Http(Box::new((listener, Access::own(io, &url)?))),
        };
        let server = args.server();
        // Without its arguments, which may hold secrets.
        let program = args.command.first().map(String::as_str).unwrap_or_default();
        log.line(&format!("starting the server `{}` with `{program}`", server.id));
        let setup = Setup::new(store, vec![ToolServer::Mcp(server)], policies);
        let mut served = Served::start(Setup { trust, serves_mcp: true, ..setup }).await?;
        served.tell();
        let anonymous = door.anonymous();
        let options = args.edge.options(served.servers.ids.clone());
        let service = served.mcp(anonymous, None, options)?;
        let until = shutdown.clone();
        served.serve(serve(&service, door, shutdown), &until).await
    })?;
    Ok(Outcome::Well)
}

impl Args {
    /// The server to be started.
    fn server(&self) -> McpCommand {
        let id = self.server_id.clone();
        McpCommand {
            id: id.unwrap_or_else(|| server_name::of_command(&self.command)),
            command: self.command.clone(),
            env: self.env.iter().cloned().collect::<BTreeMap<_, _>>(),
            folder: None,
            shared: self.shared,
        }
    }

    fn taken<'a>(&self, url: &'a StoreUrl) -> Taken<'a> {
        let data = match url {
            StoreUrl::Sqlite(folder) => Some(folder.as_path()),
            StoreUrl::Memory => None,
        };
        Taken { choose: CHOOSE, data }
    }
}

impl Door {
    /// What somebody may do who need not show anything.
    fn anonymous(&mut self) -> Anonymous {
        match self {
            Self::Stdio => Anonymous::Refused,
            Self::Http(door) => std::mem::take(&mut door.1.anonymous),
        }
    }
}

/// Serves until the input ends or everything does.
async fn serve(service: &McpService, door: Door, shutdown: CancellationToken) {
    let log = operator_log();
    let ended = match door {
        Door::Stdio => {
            log.line("serving standard input and output");
            service.serve_stdio(tokio::io::stdin(), tokio::io::stdout(), shutdown).await
        }
        Door::Http(door) => {
            let (listener, access) = *door;
            log.line(&format!("listening on {}", listener.url()));
            if let Some(told) = &access.told {
                log.line(told);
            }
            listener.serve(service, access, shutdown).await
        }
    };
    if let Err(error) = ended {
        log.line(&format!("the door broke: {error}"));
    }
}
