//! Other programs: finding them and running them.

use std::env;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::steps::Outcome;
use crate::tree;

/// Runs `program` at the root of the workspace, without colours unless a person is watching.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(tree::root());
    if !(io::stdout().is_terminal() && io::stderr().is_terminal()) {
        command.env("CARGO_TERM_COLOR", "never");
        command.env("CARGO_TERM_PROGRESS_WHEN", "never");
        command.env("NO_COLOR", "1");
    }
    command
}

/// Runs the cargo that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    command(&env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()), arguments)
}

/// Runs a command whose output goes straight to the reader.
pub(crate) fn outcome(mut command: Command) -> Result<Outcome> {
    let status = command.status().with_context(|| format!("cannot run `{}`", words(&command)))?;
    Ok(if status.success() { Outcome::Passed } else { Outcome::Failed(status.to_string()) })
}

/// What a command writes to standard output; an error when it fails.
pub(crate) fn read(mut command: Command) -> Result<String> {
    let words = words(&command);
    let output = command.output().with_context(|| format!("cannot run `{words}`"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{words}` failed ({}): {}", output.status, complaint.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{words}` did not write text"))
}

/// A command as one would type it.
pub(crate) fn words(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(program.to_string_lossy()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Where on `PATH` a program is.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::{command, find, outcome, read, words};
    use crate::steps::Outcome;

    #[test]
    fn a_command_fails_by_its_exit_code() {
        assert_eq!(outcome(command("true", &[])).unwrap(), Outcome::Passed);
        let failed = outcome(command("false", &[])).unwrap();
        assert_eq!(failed, Outcome::Failed("exit status: 1".to_owned()));
        assert!(outcome(command("chio-no-such-program", &[])).is_err());
        assert!(read(command("false", &[])).is_err());
    }

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        assert_eq!(words(&command("/opt/tools/cargo", &["fmt", "--all"])), "cargo fmt --all");
    }

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(find("true").is_some());
        assert!(find("chio-no-such-program").is_none());
    }
}
