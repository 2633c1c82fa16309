//! `chio manifest`: what a tool server offers, signed and checked.

mod sign;
mod verify;

use anyhow::Result;
use clap::Subcommand;

use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
A manifest says which tools a tool server offers. The tool server signs it.

Example:
  chio manifest sign manifest.json --key server.key --out manifest.signed.json";

/// Sign and check tool manifests
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    Sign(sign::Args),
    Verify(verify::Args),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::Sign(args) => sign::run(args, io),
            Self::Verify(args) => verify::run(args, io),
        }
    }
}
