//! `chio key`: keys to sign with.

mod new;
mod show;

use anyhow::Result;
use clap::Subcommand;

use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
Example:
  chio key new --out authority.key";

/// Make and show keys
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    New(new::Args),
    Show(show::Args),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::New(args) => new::run(args, io),
            Self::Show(args) => show::run(args, io),
        }
    }
}
