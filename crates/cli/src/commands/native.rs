//! `chio native`: the native transport, both ends.

mod call;
mod endpoint;
mod list;
mod serve;

use anyhow::Result;
use clap::Subcommand;

use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
Length-prefixed canonical JSON, over standard input and output, a Unix socket or loopback TCP.

Example:
  chio native serve --unix chio.sock
  chio native call --unix chio.sock --token token.json demo echo '{\"text\": \"hello\"}'";

/// Serve and call tools over Chio's own transport
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    Serve(serve::Args),
    Call(call::Args),
    List(list::Args),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::Serve(args) => serve::run(args, io),
            Self::Call(args) => call::run(args, io),
            Self::List(args) => list::run(args, io),
        }
    }
}
