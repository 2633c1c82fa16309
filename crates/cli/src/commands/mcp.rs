//! `chio mcp`: in front of an MCP server.

mod config;
mod serve;

use anyhow::Result;
use clap::Subcommand;

pub(super) use serve::{CHOOSE, LISTEN};

use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
Puts Chio between an MCP client and an MCP server: every call is checked, judged by the policy, and
leaves a receipt.

Examples:
  chio mcp serve -- npx -y @modelcontextprotocol/server-filesystem .
  chio mcp serve --http -- npx -y @modelcontextprotocol/server-filesystem .
  chio mcp config --client cursor -- npx -y @modelcontextprotocol/server-filesystem .";

/// Stand in front of an MCP server
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    Serve(Box<serve::Args>),
    Config(config::Args),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::Serve(args) => serve::run(args, io),
            Self::Config(args) => config::run(args, io),
        }
    }
}
