//! The commands, one file each.

/// Commands, each with the file that reads its arguments and what runs it.
macro_rules! subcommands {
    ($(#[$meta:meta])* $($(@$is:ident)? $name:ident($args:ty) => $run:path,)*) => {
        #[derive(Debug, clap::Subcommand)]
        $(#[$meta])*
        pub(crate) enum Command {
            $($(#[command($is)])? $name($args),)*
        }

        impl Command {
            pub(crate) fn run(
                &self,
                io: &mut crate::io::Io<'_>,
            ) -> anyhow::Result<crate::outcome::Outcome> {
                match self {
                    $(Self::$name(args) => $run(args, io).map(Into::into),)*
                }
            }
        }
    };
}

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
mod store;
mod tools;
mod tour;
mod up;

use anyhow::Result;
use clap::Parser;

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
line is not understood, or a file or key cannot be read or written. Of a call also: 3 its tool ran
and failed; 4 it was given to its tool, and its end is not known; 5 it was cancelled.";

/// The kernel between AI agents and the tools they call: every call checked, run and receipted
#[derive(Debug, Parser)]
#[command(name = "chio", version, after_help = NOTES, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

subcommands! {
    Up(up::Args) => up::run,
    @subcommand Mcp(Box<mcp::Command>) => mcp::Command::run,
    @subcommand A2a(Box<a2a::Command>) => a2a::Command::run,
    Init(init::Args) => init::run,
    Serve(serve::Args) => serve::run,
    Doctor(doctor::Args) => doctor::run,
    @subcommand Tools(tools::Command) => tools::Command::run,
    Call(call::Args) => call::run,
    Tour(tour::Args) => tour::run,
    @subcommand Native(Box<native::Command>) => native::Command::run,
    @subcommand Key(key::Command) => key::Command::run,
    @subcommand Capability(Box<capability::Command>) => capability::Command::run,
    @subcommand Policy(Box<policy::Command>) => policy::Command::run,
    @subcommand Approvals(approvals::Command) => approvals::Command::run,
    @subcommand Receipt(receipt::Command) => receipt::Command::run,
    @subcommand Log(log::Command) => log::Command::run,
    @subcommand Kernel(kernel::Command) => kernel::Command::run,
    @subcommand Store(store::Command) => store::Command::run,
    @subcommand Manifest(manifest::Command) => manifest::Command::run,
    Canonicalize(canonicalize::Args) => canonicalize::run,
}

impl CommandLine {
    /// Runs the command.
    pub(crate) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        self.command.run(io)
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
