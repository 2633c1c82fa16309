//! The commands, one file each.

mod a2a;
mod approvals;
mod call;
mod canonicalize;
mod capability;
mod checks;
mod doctor;
mod init;
mod kernel;
mod key;
mod log;
mod manifest;
mod mcp;
mod native;
mod policy;
mod receipt;
mod serve;
mod tools;
mod tour;
mod up;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::io::Io;
use crate::outcome::Outcome;

/// What the first help page ends with.
const NOTES: &str = "\
Examples:
  chio up                                    run a kernel with demo tools, state in .chio
  chio mcp serve -- npx -y @modelcontextprotocol/server-filesystem .
                                             in front of the MCP server that you have
  chio a2a serve --target URL                in front of an A2A agent
  chio init && chio serve                    several servers, from a file
  chio call demo echo '{\"text\": \"hello\"}'  call a tool of what runs here
  chio tour                                  a short tour, in a folder of its own
  chio policy init                           a policy of your own, to be changed
  chio key new --out authority.key           a key to issue capabilities with
  chio capability verify token.json --trusted-issuer authority.key
  chio capability issue --help               every command has a page with an example

A FILE is a path, or `-` for standard input (of at most 16 MiB); a policy is a path or a name.
A KEY is a public key in hex, or a key file whose public key is meant.

Exit code: 0 done, or valid; 1 refused or not valid, every reason is named; 2 not run: the command
line is not understood, or a file or key cannot be read or written.";

/// The kernel between AI agents and the tools they call: every call checked, run and receipted
#[derive(Debug, Parser)]
#[command(name = "chio", version, after_help = NOTES, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Args),
    #[command(subcommand)]
    Mcp(Box<mcp::Command>),
    #[command(subcommand)]
    A2a(Box<a2a::Command>),
    Init(init::Args),
    Serve(serve::Args),
    Doctor(doctor::Args),
    #[command(subcommand)]
    Tools(tools::Command),
    Call(call::Args),
    Tour(tour::Args),
    #[command(subcommand)]
    Native(Box<native::Command>),
    #[command(subcommand)]
    Key(key::Command),
    #[command(subcommand)]
    Capability(Box<capability::Command>),
    #[command(subcommand)]
    Policy(Box<policy::Command>),
    #[command(subcommand)]
    Approvals(approvals::Command),
    #[command(subcommand)]
    Receipt(receipt::Command),
    #[command(subcommand)]
    Log(log::Command),
    #[command(subcommand)]
    Kernel(kernel::Command),
    #[command(subcommand)]
    Manifest(manifest::Command),
    Canonicalize(canonicalize::Args),
}

impl CommandLine {
    /// Runs the command.
    pub(crate) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match &self.command {
            Command::Up(args) => up::run(args, io),
            Command::Mcp(command) => command.run(io),
            Command::A2a(command) => command.run(io),
            Command::Init(args) => init::run(args, io),
            Command::Serve(args) => serve::run(args, io),
            Command::Doctor(args) => doctor::run(args, io),
            Command::Tools(command) => command.run(io),
            Command::Call(args) => call::run(args, io),
            Command::Tour(args) => tour::run(args, io),
            Command::Native(command) => command.run(io),
            Command::Key(command) => command.run(io),
            Command::Capability(command) => command.run(io),
            Command::Policy(command) => command.run(io),
            Command::Approvals(command) => command.run(io),
            Command::Receipt(command) => command.run(io),
            Command::Log(command) => command.run(io),
            Command::Kernel(command) => command.run(io),
            Command::Manifest(command) => command.run(io),
            Command::Canonicalize(args) => canonicalize::run(args, io),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::CommandLine;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
