//! `chio tools list`: the tools that we may call.

use anyhow::Result;
use serde_json::{Value, json};

use crate::io::Io;
use crate::mcp_client::{McpClient, PlaceArgs};
use crate::store_args::block_on;
use crate::text;

/// How much of a description stands on a line.
const MAX_ABOUT: usize = 72;

const HELP: &str = "\
Asks the process that works on .chio (`chio up` or `chio serve`) over MCP, or the endpoint that is
named, and lists the tools that its capability lets the caller use.

Examples:
  chio tools list
  chio tools list --server demo --json
  chio tools list --url http://127.0.0.1:8931/mcp --bearer-file .chio/mcp.token";

/// List the tools that may be called
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    /// Only those of this server
    #[arg(long)]
    server: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let place = args.place.find(io)?;
    let (client, tools) = block_on(async {
        let mut client = McpClient::connect(&place).await?;
        let mut tools = client.tools().await?;
        if let Some(server) = &args.server {
            tools.retain(|tool| client.parts_of(name(tool)).0 == Some(server));
        }
        Ok((client, tools))
    })?;
    if args.json {
        io.json(&json!({"tools": tools}))?;
    } else {
        for tool in &tools {
            io.say(line(&client, tool))?;
        }
        if tools.is_empty() {
            io.say("none")?;
        }
    }
    block_on(async {
        client.close().await;
        Ok(())
    })
}

fn name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// A tool on one line, named as `chio call` takes it.
fn line(client: &McpClient, tool: &Value) -> String {
    let text = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default();
    let shown_name = match client.parts_of(name(tool)) {
        (Some(server), tool) => format!("{server} {tool}"),
        (None, tool) => tool.to_owned(),
    };
    let about = text("description").lines().next().unwrap_or_default();
    format!("{shown_name:<28}  {}", text::shortened(about, MAX_ABOUT))
}
