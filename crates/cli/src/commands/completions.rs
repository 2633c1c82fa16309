//! `chio completions`: what a shell needs to complete our commands and options.

use anyhow::Result;
use clap_complete::{Shell, generate};

use super::CommandLine;
use crate::io::Io;

const HELP: &str = "\
Prints a script for your shell. Put it where the shell looks for completions, or have the shell read
it when it starts.

Examples:
  chio completions bash > ~/.local/share/bash-completion/completions/chio
  chio completions zsh > ~/.zfunc/_chio
  chio completions fish > ~/.config/fish/completions/chio.fish
  chio completions powershell >> $PROFILE";

/// Print the completions of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let mut script = Vec::new();
    generate(args.shell, &mut CommandLine::pages(), "chio", &mut script);
    io.bytes(&script)
}
