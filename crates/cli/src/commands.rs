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
mod completions;
mod doctor;
mod help;
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

use std::ffi::OsString;

use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use crate::date::use_local_time;
use crate::io::Io;
use crate::outcome::Outcome;
use crate::text::quoted;

/// What the first help page ends with.
const NOTES: &str = "\
Examples:
  chio up                      run a kernel with demo tools, state in .chio
  chio mcp serve -- COMMAND    in front of the MCP server that you have
  chio a2a serve --target URL  in front of an A2A agent
  chio init && chio serve      several servers, from a file
  chio call demo echo '{\"text\": \"hello\"}'
                               call a tool of what runs here
  chio tour                    a short tour, in a folder of its own
  chio policy init             a policy of your own, to be changed
  chio key new                 a key to issue capabilities with
  chio capability list         who may call what, until when
  chio call --help             every command has a page with an example

A FILE is a path, or `-` for standard input (of at most 16 MiB); a policy is a path or a name. \
A KEY is a public key in hex, a file with one (`chio key public`), or a key file whose public key \
is meant. A TIME is as ISO 8601 has it (2026-09-24T12:00:00Z, 2026-09-24), or Unix seconds.

Exit code: 0 done, or valid; 1 refused or not valid, every reason is named; 2 not run: the command \
line is not understood, or a file or key cannot be read or written. Of a call also: 3 its tool ran \
and failed; 4 it was given to its tool, and its end is not known; 5 it was cancelled.";

/// The kernel between AI agents and the tools they call: every call checked, run and receipted
#[derive(Debug, Parser)]
#[command(name = "chio", version, after_help = NOTES, max_term_width = 80)]
pub(crate) struct CommandLine {
    /// Show times in the time zone of this machine, and read those without a zone so
    #[arg(long, global = true, display_order = 900)]
    local_time: bool,
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
    Completions(completions::Args) => completions::run,
}

impl CommandLine {
    /// Reads a command line.
    pub(crate) fn read<I, T>(words: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        // Times are read by their zone, so that has to be known before anything else.
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        let before_command = words.iter().take_while(|word| *word != "--");
        if before_command.into_iter().any(|word| word == "--local-time") {
            use_local_time();
        }
        let matches = Self::pages().try_get_matches_from(words.clone());
        Self::from_arg_matches(&matches.map_err(|error| with_dashes(error, &words))?)
    }

    /// All commands, with help pages that are wrapped once.
    fn pages() -> clap::Command {
        help::flowing(Self::command())
    }

    /// Runs the command.
    pub(crate) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        self.command.run(io)
    }
}

/// A command that starts a server has to stand behind `--`: its options could be taken for ours.
fn with_dashes(error: clap::Error, words: &[OsString]) -> clap::Error {
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(unknown)) if error.kind() == ErrorKind::UnknownArgument => {
            unknown
        }
        _ => return error,
    };
    let takes_command = matches!(words, [_, mcp, ..] if mcp == "mcp");
    let at = words.iter().position(|word| word == unknown.as_str());
    let Some((before, behind)) = at.map(|at| words.split_at(at)) else { return error };
    if !takes_command || unknown.starts_with('-') || words.iter().any(|word| word == "--") {
        return error;
    }
    let line = |words: &[OsString]| {
        let words = words.iter().map(|word| quoted(&word.to_string_lossy()));
        words.collect::<Vec<_>>().join(" ")
    };
    let (ours, command) = (line(before.get(1..).unwrap_or_default()), line(behind));
    let message = format!(
        "expected `--` before the command that starts the server:\n\n  chio {ours} -- {command}\n"
    );
    CommandLine::command().error(ErrorKind::UnknownArgument, message)
}

#[cfg(test)]
mod tests {
    use super::CommandLine;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::pages().debug_assert();
    }
}
