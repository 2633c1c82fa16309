//! `chio a2a`: in front of an A2A agent.

mod serve;

use anyhow::Result;
use clap::Subcommand;

use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
Puts Chio in front of an A2A agent: each of its skills becomes a tool, every call is checked, judged
by the policy, and leaves a receipt. Our own tools are served to A2A clients by `chio up` and
`chio serve`.

Examples:
  chio a2a serve --target https://agent.example.com
  chio tools list --server a2a:agent.example.com";

/// Stand in front of an A2A agent
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    Serve(Box<serve::Args>),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::Serve(args) => serve::run(args, io),
        }
    }
}
