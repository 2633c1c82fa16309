//! `chio approvals approve` and `chio approvals deny`: a signed answer to one request.

use std::path::PathBuf;

use anyhow::{Context, Result};
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::governance::{ApprovalDecision, ApprovalToken};
use chio_kernel::store::{Answered, Approval, ApprovalRequest, ApprovalState};
use chio_store::OpenStore;
use serde_json::json;

use super::find;
use crate::approving::{Answer, SOON};
use crate::date::{iso, relative};
use crate::duration;
use crate::io::Io;
use crate::outcome::Refused;
use crate::store_args::{StoreArgs, block_on};
use crate::text;
use crate::trust::check_approver;

const APPROVE_HELP: &str = "\
The answer is signed by the store's own approver, or with --key by another whom the kernel was told
to trust (`chio up --trusted-approver`). It is for this call, its arguments and its caller, once.

Examples:
  chio approvals approve appr-019ace00-7d1c
  chio approvals approve appr-019ace00-7d1c --key alice.key --valid-for 30s";

const DENY_HELP: &str = "\
The call ends with a receipt that says who denied it.

Example:
  chio approvals deny appr-019ace00-7d1c";

/// Which request is answered, and by whom.
#[derive(Debug, clap::Args)]
struct AnswerArgs {
    /// The request, as `chio approvals list` names it; the beginning of its id will do
    id: String,
    /// Key file of the approver, who signs [default: the approver of the store]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Let a call that waits go on
#[derive(Debug, clap::Args)]
#[command(after_help = APPROVE_HELP)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    answer: AnswerArgs,
    /// How long the answer holds: the call has to go on within that time, at most 1h
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = lifetime)]
    valid_for: u64,
}

/// End a call that waits
#[derive(Debug, clap::Args)]
#[command(after_help = DENY_HELP)]
pub(crate) struct DenyArgs {
    #[command(flatten)]
    answer: AnswerArgs,
}

pub(super) fn approve(args: &ApproveArgs, io: &mut Io<'_>) -> Result<()> {
    let (decision, valid_for) = (ApprovalDecision::Approved, args.valid_for);
    args.answer.give(io, Answer { decision, valid_for })
}

pub(super) fn deny(args: &DenyArgs, io: &mut Io<'_>) -> Result<()> {
    let (decision, valid_for) = (ApprovalDecision::Denied, SOON);
    args.answer.give(io, Answer { decision, valid_for })
}

/// Reads how long an approval is to hold.
fn lifetime(text: &str) -> Result<u64, String> {
    let seconds = duration::parse(text)?;
    if seconds > ApprovalToken::MAX_LIFETIME {
        return Err("expected at most 1h: no kernel takes an approval that holds longer".to_owned());
    }
    Ok(seconds)
}

impl AnswerArgs {
    fn give(&self, io: &mut Io<'_>, answer: Answer) -> Result<()> {
        let now = io.now;
        let (approval, token) = block_on(async {
            let store = self.store.open_existing(io).await?;
            let key = self.signer(io, &store).await?;
            check_approver(&store, key.public_key()).await?;
            let shared = store.shared();
            let approval = find::request(&shared, &self.id).await?;
            check_waiting(&approval, now)?;
            check_trusted(&approval.request, key.public_key())?;
            let token = answer.sign(&approval.request, now, &key)?;
            match shared.answer(&approval.request.id, &token, now).await? {
                Answered::Recorded => Ok((approval, token)),
                Answered::Over(state) => Err(over(&approval, state, now).into()),
                Answered::Unknown => Err(Refused::new("the request is gone").into()),
            }
        })?;
        if self.json {
            return io.json(&json!({"request": approval.request, "answer": token}));
        }
        report(io, &approval.request, &token)
    }

    /// The key that signs.
    async fn signer(&self, io: &mut Io<'_>, store: &OpenStore) -> Result<Keypair> {
        match &self.key {
            Some(path) => io.read_key(path),
            None => store.approver().await?.context("the store has no approver key: pass --key"),
        }
    }
}

/// Refuses a request that no call waits with any more, before anything is signed.
fn check_waiting(approval: &Approval, now: u64) -> Result<(), Refused> {
    match approval.state {
        ApprovalState::Pending if now < approval.request.expires_at => Ok(()),
        ApprovalState::Pending => Err(over(approval, ApprovalState::Expired, now)),
        state => Err(over(approval, state, now)),
    }
}

/// Refuses a key whose answers the kernel that asks does not take, before the request is answered by
/// one that counts for nothing.
fn check_trusted(request: &ApprovalRequest, key: &PublicKey) -> Result<(), Refused> {
    if request.takes_answers_of(key) {
        return Ok(());
    }
    let why = if *key == request.subject {
        "the caller's own, and callers do not approve their own calls here"
    } else {
        "one that the kernel does not trust: start it with --trusted-approver, or name the key in \
         chio.yaml"
    };
    Err(Refused::new(format!("expected the key of an approver, found `{key}`, {why}")))
}

/// The refusal of an answer that comes too late.
fn over(approval: &Approval, state: ApprovalState, now: u64) -> Refused {
    let id = &approval.request.id;
    let what = match state {
        ApprovalState::Approved | ApprovalState::Used => "was approved already".to_owned(),
        ApprovalState::Denied => "was denied already".to_owned(),
        ApprovalState::Cancelled => "was cancelled: no call waits for an answer".to_owned(),
        ApprovalState::Expired => {
            format!(
                "expired {}: no call waits for an answer",
                relative(approval.request.expires_at, now)
            )
        }
        ApprovalState::Pending => "cannot be answered now".to_owned(),
    };
    Refused::new(format!("`{id}` {what}"))
}

fn report(io: &mut Io<'_>, request: &ApprovalRequest, token: &ApprovalToken) -> Result<()> {
    io.field(&text::name(&token.decision), &request.id)?;
    io.field("tool", format_args!("{}/{}", request.server_id, request.tool_name))?;
    if let Some(principal) = &request.principal {
        io.field("principal", principal)?;
    }
    io.field("caller", &request.subject)?;
    io.field("approver", &token.approver)?;
    if token.decision == ApprovalDecision::Approved {
        io.field("holds until", iso(token.expires_at))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::lifetime;

    #[test]
    fn an_approval_holds_for_an_hour_at_most() {
        assert_eq!(lifetime("30s"), Ok(30));
        assert_eq!(lifetime("1h"), Ok(3600));
        assert!(lifetime("61m").is_err());
        assert!(lifetime("0s").is_err());
    }
}
