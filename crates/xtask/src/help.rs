//! `cargo xtask help`: one line for each command.

use anyhow::Result;

use crate::output::say;
use crate::{COMMANDS, no_arguments};

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    no_arguments(arguments)?;
    say!("The project's own commands, run as `cargo xtask COMMAND`:\n");
    let usage = |command: &crate::Command| format!("{} {}", command.name, command.arguments);
    let width = COMMANDS.iter().map(|command| usage(command).len()).max().unwrap_or_default();
    for command in COMMANDS {
        say!("  {:width$}  {}", usage(command), command.summary);
    }
    say!("\nExit code: 0 all is well, 1 something is not, 2 the command line was not understood.");
    Ok(true)
}
