//! `chio kernel`: the kernels of a store.

mod admit;
mod certify;
mod list;
mod stop;

use anyhow::Result;
use clap::Subcommand;

use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
A kernel signs receipts with a key of its own. The authority of a store vouches for each with a
certificate, so that an auditor needs to know the authority's public key only.

Example:
  chio kernel list";

/// The kernels of a store: who they are, who vouches for them, and the emergency stop
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    List(list::Args),
    Certify(certify::Args),
    Admit(admit::Args),
    Stop(stop::StopArgs),
    Resume(stop::ResumeArgs),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::List(args) => list::run(args, io),
            Self::Certify(args) => certify::run(args, io),
            Self::Admit(args) => admit::run(args, io),
            Self::Stop(args) => stop::stop(args, io),
            Self::Resume(args) => stop::resume(args, io),
        }
    }
}
