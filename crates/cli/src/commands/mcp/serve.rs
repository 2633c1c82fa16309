//! `chio mcp serve`: one MCP server, behind Chio.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use chio_mcp_adapter::Sharing;

use crate::a2a_agent::A2aAgent;
use crate::access::{AccessArgs, AccessConfig};
use crate::admission::Anonymous;
use crate::duration;
use crate::edge_args::EdgeArgs;
use crate::io::Io;
use crate::listeners::{Admits, ListenerConfig};
use crate::runtime::{EdgeConfig, Plan};
use crate::serve_args::ServeArgs;
use crate::server_name;
use crate::servers::{McpCommand, ToolServer};
use crate::store_args::StoreArgs;

/// The default address over HTTP.
pub(crate) const LISTEN: &str = "127.0.0.1:8931";
/// How another address is chosen.
pub(crate) const CHOOSE: &str = "`--http 127.0.0.1:0` takes a free port";

const HELP: &str = "\
Starts COMMAND, an MCP server that speaks on standard input and output, and serves all that it has:
over standard input and output for a client that starts commands, or over HTTP. Calls are judged by
--policy and leave receipts in the store, which `chio up` and others may use at the same time.

Over standard input and output, the process that started this one is the caller. Over HTTP, clients
send a bearer token; when none is set, one is made and kept in the data directory (mcp.token). Clients
may also present a capability of their own, in the header X-Chio-Capability. A caller is issued the
policy's default capabilities, or where it has none, one for everything that the server has.

Examples:
  chio mcp serve -- npx -y @modelcontextprotocol/server-filesystem .
  chio mcp serve --policy code-agent --server-id git -- uvx mcp-server-git
  chio mcp serve --http 127.0.0.1:0 --auth-token-file token.txt -- ./server.py
  chio mcp serve --protocol a2a --target https://agent.example.com
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
    /// The shared child says nothing of a call after its answer, so sessions may take turns; else what
    /// names no call reaches no other session for 10 seconds
    #[arg(long, requires = "shared")]
    no_late_messages: bool,
    /// How long the server may take to start: its command may have to fetch it first [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_fine)]
    start_timeout: Option<Duration>,
    /// A variable of our environment that the server sees besides the usual ones; can be repeated
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// What the server speaks; `a2a` puts us in front of the agent at --target
    #[arg(long, value_name = "PROTOCOL", value_enum, default_value_t)]
    protocol: Protocol,
    #[command(flatten)]
    edge: EdgeArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    agent: A2aAgent,
    /// The command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What the server speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Protocol {
    /// COMMAND is an MCP server
    #[default]
    Mcp,
    /// --target is an A2A agent
    A2a,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    args.serve.start_log();
    let (server, starting) = args.server(io)?;
    let listener = match args.http {
        Some(address) => ListenerConfig::http(address, AccessConfig::Args(args.access.clone()))
            .for_pages(&args.access.cors_origin),
        None => ListenerConfig::stdio(Admits::ByPolicy(Anonymous::Refused)),
    };
    let edge = EdgeConfig::new(&chio_mcp_edge::EDGE, args.edge.settings()).on(&listener.name);
    let plan = Plan {
        servers: vec![server],
        listeners: vec![listener],
        edges: vec![edge],
        starting: Some(starting),
        ends_with_client: args.http.is_none(),
        ..args.serve.plan(io, args.store.location(io)?, CHOOSE)?
    };
    plan.run(io)
}

impl Args {
    /// The tool server, and the line that announces its start.
    fn server(&self, io: &mut Io<'_>) -> Result<(Arc<dyn ToolServer>, String)> {
        match (self.protocol, self.command.is_empty()) {
            (Protocol::A2a, true) => {
                let agent = self.agent.of_args(io, self.server_id.as_ref(), &self.store)?;
                let starting = format!("asking the agent `{}` for its card", agent.id);
                Ok((Arc::new(agent), starting))
            }
            (Protocol::A2a, false) => {
                bail!("expected --target URL and no COMMAND for an A2A agent")
            }
            (Protocol::Mcp, true) => {
                bail!("expected the COMMAND that starts the server after `--`")
            }
            (Protocol::Mcp, false) if self.agent.target.is_some() => {
                bail!("expected --protocol a2a with --target")
            }
            (Protocol::Mcp, false) => {
                let server = self.child()?;
                // Without its arguments, which may hold secrets.
                let program = self.command.first().map(String::as_str).unwrap_or_default();
                let starting = format!("starting the server `{}` with `{program}`", server.id);
                Ok((Arc::new(server), starting))
            }
        }
    }

    /// The server to be started.
    fn child(&self) -> Result<McpCommand> {
        if self.env.iter().any(|name| name.contains('=')) {
            // SECURITY: the value may be a secret, which is not repeated.
            bail!(
                "expected --env NAME, found a value, which others on this machine could read: set \
                 the variable, and name it"
            );
        }
        let id = self.server_id.clone();
        Ok(McpCommand {
            id: id.unwrap_or_else(|| server_name::of_command(&self.command)),
            command: self.command.clone(),
            env: BTreeMap::new(),
            pass_env: self.env.clone(),
            folder: None,
            sharing: match (self.shared, self.http) {
                (true, _) => Sharing::Shared,
                (false, Some(_)) => Sharing::PerSession,
                (false, None) => Sharing::Single,
            },
            never_late: self.no_late_messages,
            start_timeout: self.start_timeout,
        })
    }
}
