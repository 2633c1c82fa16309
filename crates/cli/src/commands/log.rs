//! `chio log`: the receipt log of a store, checked as a whole.

mod audit;
mod consistency;

use anyhow::Result;
use clap::Subcommand;

use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
Every kernel of a store writes its own log. Receipts are its leaves; checkpoints, signed by the
kernel and chained to one another, commit to them.

Example:
  chio log audit --authority authority.pub";

/// Check the receipt log
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    Audit(audit::Args),
    Consistency(consistency::Args),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::Audit(args) => audit::run(args, io),
            Self::Consistency(args) => consistency::run(args, io),
        }
    }
}
