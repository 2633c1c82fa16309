//! `chio receipt show`: a receipt in words.

use std::path::PathBuf;

use anyhow::Result;
use chio_core::canonical;
use chio_core::principal::NamedPrincipal;
use chio_core::receipt::{
    ChildReceipt, ChioReceipt, Decision, Execution, LoggedReceipt, NO_OUTPUT_HASH, TerminalState,
};
use serde::Serialize;
use serde_json::Value;

use super::find;
use super::source::SourceArgs;
use super::{kind, read};
use crate::date::{iso, relative};
use crate::files::is_dash;
use crate::io::Io;
use crate::outcome::Refused;
use crate::reasons::readable;
use crate::store_args::block_on;
use crate::text;

const HELP: &str = "\
Shows what a receipt says; the parameters of the call and its content only by their hash (SHA-256),
unless --json is given. With --bundle, the receipt is looked for in exports in place of the store.
Whether it holds is for `chio receipt verify` to tell.

Examples:
  chio receipt show receipt.json
  chio receipt show 109bfb253f65
  chio receipt show 109bfb253f65 --bundle day.json";

/// Show what a receipt says
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The receipt, of a call or of what happened inside one: a file, or its id in the store, of
    /// which the beginning will do
    #[arg(value_name = "FILE|ID")]
    file: PathBuf,
    #[command(flatten)]
    source: SourceArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A receipt, its kind and its hash.
#[derive(Serialize)]
struct Shown<'a, T> {
    kind: &'static str,
    #[serde(flatten)]
    receipt: &'a T,
    hash: String,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let receipt = look_up(args, io)?;
    let kind = kind(&receipt);
    match &receipt {
        LoggedReceipt::Call(receipt) if args.json => {
            io.json(&Shown { kind, receipt: &**receipt, hash: canonical::hash(receipt)? })?;
        }
        LoggedReceipt::Child(receipt) if args.json => {
            io.json(&Shown { kind, receipt: &**receipt, hash: canonical::hash(receipt)? })?;
        }
        LoggedReceipt::Call(call) => show_call(io, call, receipt.principal())?,
        LoggedReceipt::Child(child) => show_child(io, child, receipt.principal())?,
    }
    Ok(())
}

/// The receipt in the file of this name, or with this id.
fn look_up(args: &Args, io: &mut Io<'_>) -> Result<LoggedReceipt> {
    let id = args.file.to_string_lossy();
    // What has a folder or an ending in its name is a file, also one that is not there.
    let is_file = is_dash(&args.file) || id.contains(['/', '.']);
    if is_file || io.folder.join(&args.file).exists() {
        return read(io, &args.file);
    }
    let row = block_on(async {
        let source = args.source.open(io).await?;
        find::receipt(&source.store, &id).await
    })?;
    match row {
        Some(row) => super::row::read(&row),
        None => Err(Refused::new(format!(
            "there is no receipt `{id}`: `chio receipt list` shows which there are"
        ))
        .into()),
    }
}

fn show_call(
    io: &mut Io<'_>,
    receipt: &ChioReceipt,
    principal: Option<NamedPrincipal<'_>>,
) -> Result<()> {
    io.field("receipt", &receipt.id)?;
    show_time(io, receipt.timestamp)?;
    io.field("tool", format_args!("{}/{}", receipt.tool_server, receipt.tool_name))?;
    io.field("decision", decision(receipt))?;
    if receipt.decision.is_some() {
        io.field("tool ran", ran(receipt.execution()))?;
    }
    show_principal(io, principal)?;
    io.field("capability", &receipt.capability_id)?;
    io.field("parameters", &receipt.action.parameter_hash)?;
    let is_nothing = receipt.content_hash == NO_OUTPUT_HASH;
    io.field("content", if is_nothing { "nothing" } else { &receipt.content_hash })?;
    io.field("policy", &receipt.policy_hash)?;
    let kind = [
        text::words(&receipt.receipt_kind),
        format!("boundary {}", text::words(&receipt.boundary_class)),
        format!("trust {}", text::words(&receipt.trust_level)),
        text::words(&receipt.tool_origin),
        format!("redaction {}", text::words(&receipt.redaction_mode)),
    ];
    io.field("kind", kind.join(", "))?;
    if let Some(tenant) = &receipt.tenant_id {
        io.field("tenant", tenant)?;
    }
    let actors = receipt.actor_chain.iter().map(|actor| match &actor.actor_kind {
        Some(kind) => format!("{} ({kind})", actor.actor_id),
        None => actor.actor_id.clone(),
    });
    io.list("actors", actors)?;
    let evidence = receipt.evidence.iter().map(|evidence| {
        let verdict = if evidence.verdict { "allowed" } else { "denied" };
        let details = evidence.details.as_deref().unwrap_or_default();
        format!("{verdict:8}{}  {details}", evidence.guard_name)
    });
    io.list("evidence", evidence)?;
    show_metadata(io, receipt.metadata.as_ref())?;
    io.field("signer", &receipt.kernel_key)
}

fn show_child(
    io: &mut Io<'_>,
    receipt: &ChildReceipt,
    principal: Option<NamedPrincipal<'_>>,
) -> Result<()> {
    io.field("receipt", format_args!("{} (child)", receipt.id))?;
    show_time(io, receipt.timestamp)?;
    io.field("operation", text::words(&receipt.operation_kind))?;
    let ended = match &receipt.terminal_state {
        TerminalState::Completed => "completed".to_owned(),
        TerminalState::Cancelled { reason } => format!("cancelled: {reason}"),
        TerminalState::Incomplete { reason } => format!("incomplete: {reason}"),
    };
    io.field("ended", ended)?;
    if receipt.metadata.as_ref().is_some_and(|metadata| metadata.get("read").is_some()) {
        io.field("server ran", ran(receipt.execution()))?;
    }
    show_principal(io, principal)?;
    io.field("session", &receipt.session_id)?;
    io.field("request", &receipt.request_id)?;
    io.field("inside of", &receipt.parent_request_id)?;
    io.field("outcome", &receipt.outcome_hash)?;
    io.field("policy", &receipt.policy_hash)?;
    show_metadata(io, receipt.metadata.as_ref())?;
    io.field("signer", &receipt.kernel_key)
}

/// What became of a call or read at its tool server, in words.
const fn ran(execution: Option<Execution>) -> &'static str {
    match execution {
        Some(Execution::NotBegun) => "no",
        Some(Execution::Begun) => "begun, its end is not known",
        Some(Execution::Completed) => "yes",
        Some(Execution::Failed) => "yes, and failed",
        Some(Execution::Unknown) => "unknown whether it ran: its kernel stopped",
        None => "unknown whether it ran: the receipt does not say",
    }
}

/// The decision in words, or what was seen where nothing was decided.
fn decision(receipt: &ChioReceipt) -> String {
    match (&receipt.decision, &receipt.observation_outcome) {
        (Some(Decision::Allow), _) => "allowed".to_owned(),
        (Some(Decision::Deny { reason, guard }), _) => match receipt.execution() {
            Some(Execution::Failed) => format!("denied, {guard} failed: {}", readable(reason)),
            _ => format!("denied by {guard}: {}", readable(reason)),
        },
        (Some(Decision::Cancelled { reason }), _) => format!("cancelled: {reason}"),
        (Some(Decision::Incomplete { reason }), _) => format!("incomplete: {reason}"),
        (None, Some(seen)) => format!("none, only {}", text::words(seen)),
        (None, None) => "none".to_owned(),
    }
}

fn show_time(io: &mut Io<'_>, timestamp: u64) -> Result<()> {
    let distance = relative(timestamp, io.now);
    io.field("time", format_args!("{} ({distance})", iso(timestamp)))
}

fn show_principal(io: &mut Io<'_>, principal: Option<NamedPrincipal<'_>>) -> Result<()> {
    principal.map_or(Ok(()), |principal| io.field("principal", principal))
}

fn show_metadata(io: &mut Io<'_>, metadata: Option<&Value>) -> Result<()> {
    let Some(metadata) = metadata else { return Ok(()) };
    io.list("metadata", serde_json::to_string_pretty(metadata)?.lines())
}
