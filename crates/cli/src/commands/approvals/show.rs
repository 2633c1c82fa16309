//! `chio approvals show`: one request, with all that an approver needs to answer it.

use anyhow::Result;
use chio_core::governance::GovernedTransactionIntent;
use chio_kernel::store::{Approval, ApprovalRequest, ApprovalState};
use serde_json::Value;

use super::find;
use crate::date::{iso, relative};
use crate::io::Io;
use crate::store_args::{StoreArgs, block_on};
use crate::text;

const HELP: &str = "\
Shows who asks, for which tool, with which arguments, why an approval is needed, until when, and
what came of it. The beginning of an id will do where only one request has it.

Example:
  chio approvals show appr-019ace00-7d1c";

/// Show a call that waits for approval
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The request, as `chio approvals list` names it
    id: String,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let approval = block_on(async {
        let store = args.store.open_existing(io).await?.shared();
        find::request(&store, &args.id).await
    })?;
    if args.json {
        return io.json(&approval);
    }
    show(io, &approval)
}

fn show(io: &mut Io<'_>, approval: &Approval) -> Result<()> {
    let request = &approval.request;
    let now = io.now;
    io.field("approval", &request.id)?;
    io.field("state", state(approval, now))?;
    let distance = relative(request.requested_at, now);
    io.field("asked", format_args!("{} ({distance})", iso(request.requested_at)))?;
    io.field("until", iso(request.expires_at))?;
    io.field("why", format_args!("{}: {}", request.asked_by, request.reason))?;
    if let Some(principal) = &request.principal {
        io.field("principal", principal)?;
    }
    io.field("caller", &request.subject)?;
    io.field("capability", &request.capability_id)?;
    io.field("tool", format_args!("{}/{}", request.server_id, request.tool_name))?;
    show_arguments(io, request)?;
    show_intent(io, &request.intent)?;
    io.field("intent hash", &request.intent_hash)?;
    io.field("call", &request.request_id)?;
    if let Some(trace) = &request.trace_id {
        io.field("trace", trace)?;
    }
    if let Some(answer) = &approval.answer {
        let said = text::name(&answer.decision);
        let when = iso(answer.issued_at);
        io.field("answer", format_args!("{said} {when} by {}", answer.approver))?;
    }
    match &approval.receipt_id {
        Some(receipt) => io.field("receipt", receipt),
        None => Ok(()),
    }
}

/// The state in words.
fn state(approval: &Approval, now: u64) -> String {
    let (name, expires_at) = (approval.state.name(), approval.request.expires_at);
    match approval.state {
        ApprovalState::Pending if now >= expires_at => format!("{name}, too late to answer"),
        ApprovalState::Pending => format!("{name}, ends {}", relative(expires_at, now)),
        ApprovalState::Approved => format!("{name}, the call goes on when its kernel sees it"),
        ApprovalState::Used => format!("{name}: it was approved, and the call went on"),
        ApprovalState::Denied | ApprovalState::Expired | ApprovalState::Cancelled => {
            name.to_owned()
        }
    }
}

/// All of the arguments: an approver cannot approve what is left out.
fn show_arguments(io: &mut Io<'_>, request: &ApprovalRequest) -> Result<()> {
    io.list("arguments", serde_json::to_string_pretty(&request.action.parameters)?.lines())?;
    let context = request.intent.context.as_ref();
    let named = context.and_then(|context| context.get("parameterHash")).and_then(Value::as_str);
    if named.is_some_and(|named| named != request.action.parameter_hash) {
        io.field("", "(not all of them: a guard took parts out, and no receipt will have those)")?;
    }
    Ok(())
}

fn show_intent(io: &mut Io<'_>, intent: &GovernedTransactionIntent) -> Result<()> {
    io.field("intent", format_args!("{} ({})", intent.purpose, intent.id))?;
    if let Some(amount) = &intent.max_amount {
        io.field("", format_args!("for at most {} {}", amount.units, amount.currency))?;
    }
    if let Some(commerce) = &intent.commerce {
        io.field("", format_args!("paid to {}", commerce.seller))?;
    }
    if let Some(chain) = &intent.call_chain {
        let (parent, origin) = (&chain.parent_request_id, &chain.origin_subject);
        io.field("", format_args!("made for {parent}, begun by {origin}, as the caller says"))?;
    }
    Ok(())
}
