//! `chio tools`: what an endpoint offers.

mod list;

use anyhow::Result;
use clap::Subcommand;

use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
Examples:
  chio tools list
  chio call demo echo '{\"text\": \"hello\"}'";

/// List the tools of what runs here
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    List(list::Args),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::List(args) => list::run(args, io),
        }
    }
}
