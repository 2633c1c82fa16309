//! `chio a2a serve`: one A2A agent, behind Chio.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use chio_edge::{SettingValue, Settings};

use crate::a2a_agent::A2aAgent;
use crate::access::{AccessArgs, AccessConfig};
use crate::address;
use crate::commands::mcp::{CHOOSE, LISTEN};
use crate::edge_args::EdgeArgs;
use crate::io::Io;
use crate::listeners::ListenerConfig;
use crate::runtime::{EdgeConfig, Plan};
use crate::serve_args::ServeArgs;
use crate::server_name;
use crate::store_args::StoreArgs;

const HELP: &str = "\
Reads the agent's card and serves each of its skills as a tool, over MCP (/mcp) and A2A at one
address. The agent is shown only what its card asks for; an agent whose card is not as expected is
refused, and so is a call for which we have nothing to show. Secrets are read from files.

Clients send a bearer token; when none is set, one is made and kept in the data directory (mcp.token).
`chio mcp serve --protocol a2a` does the same over standard input and output.

Examples:
  chio a2a serve --target https://agent.example.com
  chio a2a serve --target https://agent.example.com --manifest-key ./manifest.key \\
    --partner design-partner-a --required-tenant tenant-alpha --require-skill research
  chio a2a serve --target https://agent.example.com --oauth-client client-id=secret.txt
  chio tools list --server a2a:agent.example.com
  chio call a2a:agent.example.com research '{\"message\": \"hello\"}'";

/// Serve an A2A agent through Chio
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    agent: A2aAgent,
    /// Serve at this address; port 0 takes a free one
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = address::parse, default_value = LISTEN)]
    http: SocketAddr,
    /// Where A2A clients reach it, for its cards; needed to serve at every address (0.0.0.0)
    /// [default: the address of --http]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
    /// The agent's name in grants, policies and receipts [default: a2a:HOST]
    #[arg(long, value_name = "ID", value_parser = server_name::check)]
    server_id: Option<String>,
    #[command(flatten)]
    edge: EdgeArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    serve: ServeArgs,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    args.serve.start_log();
    if args.url.is_none() && args.http.ip().is_unspecified() {
        bail!(
            "expected `--url`, where clients reach it, since it listens at every address: its \
             cards have to name one"
        );
    }
    let url = args.url.clone().map(SettingValue::Text);
    let a2a = EdgeConfig::new(&chio_a2a_edge::EDGE, Settings::default().with("url", url));
    // Not by the parser of the line, which would repeat a password in it.
    (a2a.kind.check)(&a2a.settings, Some(args.http)).map_err(|error| anyhow!("--url: {error}"))?;
    let agent = args.agent.of_args(io, args.server_id.as_ref(), &args.store)?;
    let starting = format!("asking the agent `{}` for its card", agent.id);
    let access = AccessConfig::Args(args.access.clone());
    let listener = ListenerConfig::http(args.http, access).for_pages(&args.access.cors_origin);
    let plan = Plan {
        servers: vec![Arc::new(agent)],
        listeners: vec![listener],
        edges: vec![EdgeConfig::new(&chio_mcp_edge::EDGE, args.edge.settings()), a2a],
        starting: Some(starting),
        ..args.serve.plan(io, args.store.location(io)?, CHOOSE)?
    };
    plan.run(io)
}
