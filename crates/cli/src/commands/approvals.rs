//! `chio approvals`: the inbox of calls that wait until an approver says yes.

mod answer;
mod find;
mod list;
mod show;

use anyhow::Result;
use clap::Subcommand;

use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
A call of a tool that needs approval waits in the inbox of the store until somebody answers, the
caller loses interest, or its time is up. An answer is signed, for exactly this call and this once;
it works from any terminal while the kernel runs, and the call goes on within a second.

Examples:
  chio approvals list
  chio approvals show appr-019ace00-7d1c-7b2e-9f0a-3b1f6f3a2c11
  chio approvals approve appr-019ace00-7d1c";

/// Answer calls that wait for approval
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    List(list::Args),
    Show(show::Args),
    Approve(answer::ApproveArgs),
    Deny(answer::DenyArgs),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::List(args) => list::run(args, io),
            Self::Show(args) => show::run(args, io),
            Self::Approve(args) => answer::approve(args, io),
            Self::Deny(args) => answer::deny(args, io),
        }
    }
}
