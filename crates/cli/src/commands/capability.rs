//! `chio capability`: tokens, made, handed on, read and checked.

mod delegate;
mod import;
mod inspect;
mod issue;
mod revoke;
mod scope;
mod verify;
mod view;

use anyhow::Result;
use clap::Subcommand;
use uuid::Uuid;

use crate::io::Io;
use crate::outcome::Outcome;

/// What a text is not when it is no token.
const TOKEN: &str = "a capability token";

const HELP: &str = "\
A capability token says who may call which tools, until when. Its issuer signs it; its subject uses
it, and may hand a part of it on where the token says so.

Example:
  chio capability issue --key authority.key --subject agent.key --grant files/read_file";

/// Issue, hand on, read, check and revoke capability tokens
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    Issue(issue::Args),
    Delegate(delegate::Args),
    Inspect(inspect::Args),
    Verify(verify::Args),
    Revoke(revoke::Args),
    Import(import::Args),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::Issue(args) => issue::run(args, io),
            Self::Delegate(args) => delegate::run(args, io),
            Self::Inspect(args) => inspect::run(args, io),
            Self::Verify(args) => verify::run(args, io),
            Self::Revoke(args) => revoke::run(args, io),
            Self::Import(args) => import::run(args, io),
        }
    }
}

/// A name for a token that no other has.
fn new_id() -> String {
    format!("cap-{}", Uuid::now_v7())
}
