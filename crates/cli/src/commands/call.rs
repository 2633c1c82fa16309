//! `chio call`: one call of a tool, over MCP, as a client makes it.

use anyhow::Result;
use chio_core::strict;
use chio_core::tool_result::ToolResult;
use serde_json::{Map, Value};

use crate::files::{is_dash, unreadable};
use crate::io::Io;
use crate::mcp_client::{McpClient, Notice, PlaceArgs};
use crate::outcome::Outcome;
use crate::reasons::readable;
use crate::store_args::block_on;

const HELP: &str = "\
Calls a tool through the process that works on .chio (`chio up` or `chio serve`), or through the
endpoint that is named. What the tool answers goes to standard output; as whom it was called, and the
receipt's id, to standard error. A denial tells its reason and its receipt. A call that needs approval
waits until `chio approvals` answers it; Ctrl-C cancels it.

Exit code: 1 denied; 3 the tool ran and failed; 4 the tool was called and its end is not known;
5 cancelled.

Examples:
  chio call demo echo '{\"text\": \"hello\"}'
  chio call demo now --json
  echo '{\"text\": \"hello\"}' | chio call demo echo -
  chio call --url http://127.0.0.1:8931/mcp --bearer-file .chio/mcp.token \\
    filesystem list_directory '{\"path\": \".\"}'";

/// Call a tool of what runs here
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    /// The server
    server: String,
    /// The tool
    tool: String,
    /// The arguments, as a JSON object; `-` reads them from standard input
    #[arg(default_value = "{}", value_name = "JSON")]
    arguments: String,
    /// Print the whole result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let place = args.place.find(io)?;
    let text = if is_dash(args.arguments.as_ref()) {
        io.read(args.arguments.as_ref())?
    } else {
        args.arguments.clone().into_bytes()
    };
    let arguments: Map<String, Value> = strict::object_from_slice(&text)
        .map_err(|error| unreadable("a JSON object of arguments", &error))?;
    if let Some(caller) = &place.caller {
        io.complain("as", caller);
    }
    let result = block_on(async {
        let mut client = McpClient::connect(&place).await?;
        let mut told = |notice: Notice| tell(io, &notice);
        let result = client.call(&args.server, &args.tool, arguments, &mut told).await;
        client.close().await;
        result
    })?;
    if args.json {
        io.json(&result)?;
    } else {
        print(io, &result)?;
    }
    if let Some(receipt) = result.pointer("/_meta/chio/receiptId").and_then(Value::as_str) {
        io.complain("receipt", receipt);
    }
    let is_error = ToolResult::new(&result).is_error();
    Ok(Outcome::of_answer(result.pointer("/_meta/chio"), is_error))
}

/// Shows what the server lets us know while the call runs.
fn tell(io: &mut Io<'_>, notice: &Notice) {
    if notice.method != "notifications/message" {
        return;
    }
    match notice.params.get("data") {
        Some(Value::String(words)) => io.complain("note", words),
        Some(other) => io.complain("note", other),
        None => {}
    }
}

/// Prints what a tool answered; what went wrong goes to standard error.
fn print(io: &mut Io<'_>, result: &Value) -> Result<()> {
    let failed = ToolResult::new(result).is_error();
    let content = result.get("content").and_then(Value::as_array);
    for item in content.into_iter().flatten() {
        let shown = if failed { readable(&shown(item)) } else { shown(item) };
        for line in shown.lines() {
            if failed {
                io.complain_at(line);
            } else {
                io.say(line)?;
            }
        }
    }
    Ok(())
}

/// An item of an answer, as text.
fn shown(item: &Value) -> String {
    let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str);
    match text("/type") {
        Some("text") => text("/text").unwrap_or_default().to_owned(),
        Some("resource") if text("/resource/text").is_some() => {
            text("/resource/text").unwrap_or_default().to_owned()
        }
        kind => {
            let kind = kind.unwrap_or("something");
            let about =
                text("/mimeType").or_else(|| text("/resource/uri")).or_else(|| text("/uri"));
            format!("[{kind} {}; --json shows it]", about.unwrap_or_default())
        }
    }
}
