//! `chio tools list`: the tools that we may call.

use anyhow::Result;
use serde_json::{Value, json};

use crate::io::Io;
use crate::mcp_client::{McpClient, PlaceArgs};
use crate::store_args::block_on;
use crate::table::{Row, Table};

const HEADS: [&str; 2] = ["TOOL", "ABOUT"];

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
            client.check_server(server)?;
        }
        Ok((client, tools, problems))
    })?;
    if args.json {
        io.json(&json!({"tools": tools, "problems": problems}))?;
    } else {
        let listed = tools.iter().map(|tool| row(&client, tool));
        let rows: Vec<Row> = listed.chain(problems.iter().map(problem_row)).collect();
        if rows.is_empty() {
            io.say("none")?;
        } else {
            Table::of(&HEADS, 0, &rows).write(io, rows)?;
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

/// A tool, named as `chio call` takes it.
fn row(client: &McpClient, tool: &Value) -> Row {
    let shown_name = match client.parts_of(name(tool)) {
        (Some(server), tool) => format!("{server} {tool}"),
        (None, tool) => tool.to_owned(),
    };
    let about = text_of(tool, "description").lines().next().unwrap_or_default().to_owned();
    let repaired = tool.pointer("/_meta/chio/repaired").and_then(Value::as_array);
    let repaired = repaired.into_iter().flatten().filter_map(Value::as_str);
    let repaired: Vec<&str> = repaired.collect();
    let note = match repaired.as_slice() {
        [] => String::new(),
        repairs => format!("schema put right: {}", repairs.join("; ")),
    };
    Row { cells: vec![shown_name, about], note }
}

/// A tool that cannot be called, and why.
fn problem_row(problem: &Value) -> Row {
    let what = format!("{} {}", text_of(problem, "server"), text_of(problem, "tool"));
    let cells = vec![what.trim_end().to_owned(), "not listed".to_owned()];
    Row { cells, note: text_of(problem, "problem").to_owned() }
}
