//! `chio approvals list`: who waits for what.

use anyhow::Result;
use chio_kernel::store::{Approval, ApprovalQuery, ApprovalState};
use serde_json::{Value, json};

use crate::date::{iso, relative};
use crate::io::Io;
use crate::receipt_summary::by;
use crate::store_args::{StoreArgs, block_on};
use crate::table::{Row, Table};
use crate::text;

const HELP: &str = "\
Newest first: when it was asked, how far it has come, the id, the tool, who calls, how long an answer
is waited for, and why it is asked. When there is more, the last line says how to go on.

Examples:
  chio approvals list
  chio approvals list --state any --json";

const HEADS: [&str; 4] = ["ASKED", "STATE", "ID", "TOOL"];

/// List calls that wait for approval
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Those that have come so far
    #[arg(long, value_enum, default_value_t = StateName::Pending)]
    state: StateName,
    /// At most this many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Go on after this cursor
    #[arg(long)]
    cursor: Option<u64>,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How far a request has come, as it is written on the command line.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum StateName {
    /// No approver has answered
    Pending,
    /// An approver said yes; its kernel has not seen it yet
    Approved,
    /// An approver said no
    Denied,
    /// No approver answered in time
    Expired,
    /// The call ended before an approver answered
    Cancelled,
    /// An approver said yes, and the call went on
    Used,
    /// All of them
    Any,
}

impl StateName {
    const fn state(self) -> Option<ApprovalState> {
        Some(match self {
            Self::Pending => ApprovalState::Pending,
            Self::Approved => ApprovalState::Approved,
            Self::Denied => ApprovalState::Denied,
            Self::Expired => ApprovalState::Expired,
            Self::Cancelled => ApprovalState::Cancelled,
            Self::Used => ApprovalState::Used,
            Self::Any => return None,
        })
    }
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let (limit, state) = (usize::try_from(args.limit)?, args.state.state());
    let query = ApprovalQuery { state, cursor: args.cursor, limit };
    let (rows, next) = block_on(async {
        let store = args.store.open_existing(io).await?.shared();
        let rows = store.approvals(&query).await?;
        let Some((last, _)) = rows.last() else { return Ok((rows, None)) };
        // Whether there is more is a question of its own: answers may be short.
        let after = ApprovalQuery { cursor: Some(*last), limit: 1, ..query };
        let next = store.approvals(&after).await?.first().map(|_| *last);
        Ok((rows, next))
    })?;
    if args.json {
        let rows: Vec<Value> = rows.iter().map(document).collect();
        return io.json(&json!({"approvals": rows, "nextCursor": next}));
    }
    if rows.is_empty() {
        return io.say("none");
    }
    let ids = text::short_ids(rows.iter().map(|(_, it)| it.request.id.as_str()));
    let shown = rows.iter().zip(ids).map(|((_, it), id)| row(it, id, io.now));
    let shown: Vec<Row> = shown.collect();
    Table::of(&HEADS, 1, &shown).write(io, shown)?;
    next.map_or(Ok(()), |cursor| io.say(format_args!("more: add --cursor {cursor}")))
}

/// A row for scripts.
fn document((cursor, approval): &(u64, Approval)) -> Value {
    let Approval { request, state, answer, receipt_id } = approval;
    json!({"cursor": cursor, "request": request, "state": state, "answer": answer,
        "receipt_id": receipt_id})
}

/// A row for people.
fn row(approval: &Approval, id: String, now: u64) -> Row {
    let request = &approval.request;
    let until = match approval.state {
        ApprovalState::Pending if now >= request.expires_at => "too late, ",
        ApprovalState::Pending => &*format!("ends {}, ", relative(request.expires_at, now)),
        _ => "",
    };
    let (asked_by, reason) = (&request.asked_by, &request.reason);
    let by = by(request.principal.as_ref(), ", ");
    let cells = vec![
        iso(request.requested_at),
        approval.state.name().to_owned(),
        id,
        format!("{}/{}", request.server_id, request.tool_name),
    ];
    Row { cells, note: format!("{by}{until}{asked_by}: {reason}") }
}
