//! `chio native call`: one call, as an agent makes it.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, bail};
use chio_core::canonical;
use chio_core::capability::{CapabilityToken, DpopProof, DpopTarget};
use chio_core::crypto::random_bytes;
use chio_core::message::{ToolCallRequest, ToolCallResponse, ToolCallResult};
use chio_core::receipt::{ChioReceipt, Decision, Execution, RedactionMode};
use chio_core::strict;
use serde_json::Value;
use uuid::{Builder, Uuid};

use super::endpoint::EndpointArgs;
use crate::files::{Access, is_dash, unreadable};
use crate::io::Io;
use crate::outcome::{Outcome, Refused};
use crate::reasons::readable;
use crate::store_args::block_on;
use crate::text;

/// After which time an operator who looks at the terminal wants to know why nothing happens.
const SOON: Duration = Duration::from_secs(2);

/// What they are told.
const STILL: &str = "no answer yet; if the call needs approval, `chio approvals list` shows it";

const HELP: &str = "\
Prints what the tool returned and, on standard error, which receipt was signed for it; the receipt
is checked to be whole. A call that needs approval waits until `chio approvals` answers it; Ctrl-C
calls it off.

Exit code: 1 denied; 3 the tool ran and failed; 4 the tool was called and its end is not known;
5 cancelled.

Examples:
  chio native call --token token.json demo echo '{\"text\": \"hello\"}'
  chio native call --tcp 127.0.0.1:4000 --token token.json demo count_to '{\"n\": 3}' --json
  chio native call --token token.json --dpop-key agent.key demo now
  chio native call --token token.json --intent intent.json demo paid";

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
    /// Prove with the subject's key that this very call is the subject's own
    #[arg(long, value_name = "FILE")]
    dpop_key: Option<PathBuf>,
    /// What is intended with the call, as JSON: id, server_id, tool_name, purpose and more
    #[arg(long, value_name = "FILE")]
    intent: Option<PathBuf>,
    /// An approval of this call, as its approver signed it
    #[arg(long, value_name = "FILE")]
    approval: Option<PathBuf>,
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
    let mut request = ToolCallRequest::new(id, token, &args.server, &args.tool, params);
    args.vouch(io, &mut request)?;
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

impl Args {
    /// Adds what speaks for the call besides its token.
    fn vouch(&self, io: &mut Io<'_>, request: &mut ToolCallRequest) -> Result<()> {
        if let Some(path) = &self.intent {
            request.governed_intent = Some(io.read_exact_json(path, "a governed intent")?);
        }
        if let Some(path) = &self.approval {
            request.approval_token = Some(io.read_json(path, "an approval")?);
        }
        if let Some(path) = &self.dpop_key {
            let key = io.read_key(path)?;
            let target = DpopTarget {
                token: &request.capability_token,
                tool_server: &request.server_id,
                tool_name: &request.tool,
                arguments: &request.params,
            };
            let (subject, found) = (&request.capability_token.subject, key.public_key());
            if subject != found {
                let problem = format!(
                    "expected --dpop-key of the token's subject `{subject}`, found `{found}`"
                );
                return Err(Refused::new(problem).into());
            }
            let nonce = Builder::from_random_bytes(random_bytes()).into_uuid().to_string();
            let proof = DpopProof::new(&target, nonce, io.now, &key);
            request.dpop_proof = Some(proof.map_err(Refused::from)?);
        }
        Ok(())
    }
}

/// Makes the call; chunks are printed as they come.
async fn call(args: &Args, io: &mut Io<'_>, request: ToolCallRequest) -> Result<ToolCallResponse> {
    let client = args.endpoint.connect(io).await?;
    let mut written = Ok(());
    let io = RefCell::new(io);
    let came = Cell::new(false);
    let response = {
        let mut calling = pin!(client.call(request, |_, data| {
            came.set(true);
            if written.is_ok() {
                let mut io = io.borrow_mut();
                written = print(&mut io, &data).and_then(|()| io.flush());
            }
        }));
        match tokio::time::timeout(SOON, &mut calling).await {
            Ok(response) => response,
            Err(_) => {
                if !came.get() {
                    io.borrow_mut().complain("waiting", STILL);
                }
                // The kernel sees the end of the connection, and cancels what runs.
                tokio::select! {
                    response = calling => response,
                    _ = tokio::signal::ctrl_c() => {
                        return Err(Refused::ended("called off", Outcome::Cancelled).into());
                    }
                }
            }
        }
    };
    written?;
    Ok(response?)
}

fn print(io: &mut Io<'_>, value: &Value) -> Result<()> {
    let line = serde_json::to_string(value)?;
    io.bytes(line.as_bytes())?;
    io.bytes(b"\n")
}

fn report(args: &Args, io: &mut Io<'_>, response: &ToolCallResponse) -> Result<Outcome> {
    let whole = matches!(
        response.result,
        ToolCallResult::Ok { .. } | ToolCallResult::StreamComplete { .. }
    );
    let outcome = match ended(&response.receipt) {
        // The result did not fit into a frame.
        Outcome::Well if !whole => Outcome::Invalid,
        outcome => outcome,
    };
    if args.json {
        io.json(response)?;
        return Ok(outcome);
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
                Some(Decision::Deny { reason, guard }) => {
                    format!("{guard}: {}", readable(reason))
                }
                _ => String::new(),
            };
            let word = if outcome == Outcome::Failed { "failed" } else { "denied" };
            io.complain(word, format_args!("{detail} [{}]", error.code()));
        }
    }
    io.complain("receipt", receipt);
    Ok(outcome)
}

/// How a call ended, by its receipt.
fn ended(receipt: &ChioReceipt) -> Outcome {
    let failed = receipt.execution() == Some(Execution::Failed);
    match &receipt.decision {
        Some(Decision::Allow | Decision::Deny { .. }) if failed => Outcome::Failed,
        Some(Decision::Allow) => Outcome::Well,
        Some(Decision::Deny { .. }) | None => Outcome::Invalid,
        Some(Decision::Cancelled { .. }) => Outcome::Cancelled,
        Some(Decision::Incomplete { .. }) => Outcome::Incomplete,
    }
}
