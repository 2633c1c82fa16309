//! `chio native call`: one call, as an agent makes it.

use std::path::PathBuf;

use anyhow::{Result, bail};
use chio_core::canonical;
use chio_core::capability::CapabilityToken;
use chio_core::message::{ToolCallRequest, ToolCallResponse, ToolCallResult};
use chio_core::receipt::RedactionMode;
use chio_core::strict;
use serde_json::Value;
use uuid::Uuid;

use super::endpoint::EndpointArgs;
use crate::files::{Access, is_dash, unreadable};
use crate::io::Io;
use crate::outcome::Outcome;
use crate::store_args::block_on;
use crate::text;

const HELP: &str = "\
Prints what the tool returned and, on standard error, which receipt was signed for it; the receipt
is checked to be whole. Exit code 1 when the call was denied, failed or did not end.

Examples:
  chio native call --token token.json demo echo '{\"text\": \"hello\"}'
  chio native call --tcp 127.0.0.1:4000 --token token.json demo count_to '{\"n\": 3}' --json";

/// Call a tool
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    endpoint: EndpointArgs,
    /// The token to present
    #[arg(long, value_name = "FILE")]
    token: PathBuf,
    /// The server
    server: String,
    /// The tool
    tool: String,
    /// The arguments, as JSON; `-` reads them from standard input
    #[arg(default_value = "{}", value_name = "JSON")]
    params: String,
    /// The name of the call [default: a UUID]
    #[arg(long)]
    id: Option<String>,
    /// Write the receipt to this file
    #[arg(long, value_name = "FILE")]
    receipt_out: Option<PathBuf>,
    /// Print the whole answer as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let token: CapabilityToken = io.read_json(&args.token, "a capability token")?;
    let text = if is_dash(args.params.as_ref()) {
        io.read(args.params.as_ref())?
    } else {
        args.params.clone().into_bytes()
    };
    let params: Value =
        strict::from_slice(&text).map_err(|error| unreadable("JSON arguments", &error))?;
    let id = args.id.clone().unwrap_or_else(|| Uuid::now_v7().to_string());
    let request = ToolCallRequest::new(id, token, &args.server, &args.tool, params);
    let about = (request.capability_token.id.clone(), canonical::hash(&request.params)?);
    let response = block_on(call(args, io, request))?;
    if let Some(path) = &args.receipt_out {
        let receipt = text::json(&response.receipt)?;
        io.write_file(path, receipt.as_bytes(), Access::Ordinary, false)?;
    }
    if let Err(error) = response.receipt.verify() {
        bail!("the kernel's receipt does not hold: {error}");
    }
    let receipt = &response.receipt;
    let names = (&receipt.capability_id, &receipt.tool_server, &receipt.tool_name);
    let kept = receipt.redaction_mode == RedactionMode::None;
    if names != (&about.0, &args.server, &args.tool)
        || (kept && receipt.action.parameter_hash != about.1)
    {
        bail!("the kernel's receipt is about another call");
    }
    report(args, io, &response)
}

/// Makes the call; chunks are printed as they come.
async fn call(args: &Args, io: &mut Io<'_>, request: ToolCallRequest) -> Result<ToolCallResponse> {
    let client = args.endpoint.connect(io).await?;
    let mut written = Ok(());
    let response = client
        .call(request, |_, data| {
            if written.is_ok() {
                written = print(io, &data).and_then(|()| io.flush());
            }
        })
        .await?;
    written?;
    Ok(response)
}

fn print(io: &mut Io<'_>, value: &Value) -> Result<()> {
    let line = serde_json::to_string(value)?;
    io.bytes(line.as_bytes())?;
    io.bytes(b"\n")
}

fn report(args: &Args, io: &mut Io<'_>, response: &ToolCallResponse) -> Result<Outcome> {
    let well = matches!(
        response.result,
        ToolCallResult::Ok { .. } | ToolCallResult::StreamComplete { .. }
    );
    if args.json {
        io.json(response)?;
        return Ok(Outcome::of(well));
    }
    let receipt = &response.receipt.id;
    match &response.result {
        ToolCallResult::Ok { value } => print(io, value)?,
        ToolCallResult::StreamComplete { total_chunks } => {
            io.complain("stream", format_args!("complete, {total_chunks} chunks"));
        }
        ToolCallResult::Cancelled { reason, chunks_received } => {
            io.complain("cancelled", format_args!("{reason} (after {chunks_received} chunks)"));
        }
        ToolCallResult::Incomplete { reason, chunks_received } => {
            io.complain("incomplete", format_args!("{reason} (after {chunks_received} chunks)"));
        }
        ToolCallResult::Err { error } => {
            let detail = match &response.receipt.decision {
                Some(chio_core::receipt::Decision::Deny { reason, guard }) => {
                    format!("{guard}: {reason}")
                }
                _ => String::new(),
            };
            io.complain("denied", format_args!("{detail} [{}]", error.code()));
        }
    }
    io.complain("receipt", receipt);
    Ok(Outcome::of(well))
}
