//! `chio tools list`: the tools that we may call.

use anyhow::Result;
use serde_json::{Value, json};

use crate::io::Io;
use crate::mcp_client::{McpClient, PlaceArgs};
use crate::store_args::block_on;
use crate::text;

/// How much of a description stands on a line.
const MAX_ABOUT: usize = 72;
/// How much of what is wrong with a tool stands on a line.
const MAX_PROBLEM: usize = 300;

const HELP: &str = "\
Asks the process that works on .chio (`chio up` or `chio serve`) over MCP, or the endpoint that is
named, and lists the tools that its capability lets the caller use. Tools that cannot be called, since
their schema cannot be used, and schemas that were put right are told as well.

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
    let (client, tools, problems) = block_on(async {
        let mut client = McpClient::connect(&place).await?;
        let (mut tools, mut problems) = client.tools_and_problems().await?;
        if let Some(server) = &args.server {
            tools.retain(|tool| client.parts_of(name(tool)).0 == Some(server));
            problems.retain(|problem| text_of(problem, "server") == server);
        }
        Ok((client, tools, problems))
    })?;
    if args.json {
        io.json(&json!({"tools": tools, "problems": problems}))?;
    } else {
        for tool in &tools {
            io.say(line(&client, tool))?;
            let repaired = tool.pointer("/_meta/chio/repaired").and_then(Value::as_array);
            for repair in repaired.into_iter().flatten().filter_map(Value::as_str) {
                io.say(format_args!(
                    "  schema put right: {}",
                    text::shortened(repair, MAX_PROBLEM)
                ))?;
            }
        }
        for problem in &problems {
            let what = format!("{} {}", text_of(problem, "server"), text_of(problem, "tool"));
            let why = text::shortened(text_of(problem, "problem"), MAX_PROBLEM);
            io.say(format_args!("{:<28}  not listed: {why}", what.trim_end()))?;
        }
        if tools.is_empty() && problems.is_empty() {
            io.say("none")?;
        }
    }
    block_on(async {
        client.close().await;
        Ok(())
    })
}

fn name(tool: &Value) -> &str {
    text_of(tool, "name")
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A tool on one line, named as `chio call` takes it.
fn line(client: &McpClient, tool: &Value) -> String {
    let shown_name = match client.parts_of(name(tool)) {
        (Some(server), tool) => format!("{server} {tool}"),
        (None, tool) => tool.to_owned(),
    };
    let about = text_of(tool, "description").lines().next().unwrap_or_default();
    format!("{shown_name:<28}  {}", text::shortened(about, MAX_ABOUT))
}
