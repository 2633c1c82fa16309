//! The project's own commands: `cargo xtask COMMAND`.

mod a2a;
mod bench;
mod check;
mod deps;
mod faithful;
mod fuzz;
mod help;
mod long;
mod mcp;
mod output;
mod reference;
mod requirements;
mod shard;
mod shell;
mod steps;
mod suites;
mod test;
#[cfg(test)]
mod tidy;
mod tree;

use std::process::ExitCode;

use anyhow::Result;

/// One command. Whatever there is to know about it, the help page included, is in [`COMMANDS`].
struct Command {
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    /// Answers whether all is well; an error is for what could not be found out.
    run: fn(&[String]) -> Result<bool>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "check",
        arguments: "",
        summary: "formatting, clippy and unit tests; the everyday loop, stops at the first failure",
        run: check::run,
    },
    Command {
        name: "test",
        arguments: "",
        summary: "everything that must hold before a merge; runs every step, then sums up",
        run: test::run,
    },
    Command {
        name: "requirements",
        arguments: "[--json] [--uncovered [PREFIX]]",
        summary: "which requirements of spec/requirements.toml a test covers, and which none does",
        run: requirements::run,
    },
    Command {
        name: "deps",
        arguments: "",
        summary: "licences, sources, bans, written reasons and advisories of third-party crates",
        run: deps::run,
    },
    Command {
        name: "fuzz",
        arguments: "[TARGET] [--seconds N] [--list] [--guided]",
        summary: "throw made-up input at the parsers; all targets when none is named",
        run: fuzz::run,
    },
    Command {
        name: "bench",
        arguments: "[--quick] [PART]...",
        summary: "what the core and the road cost, against floors measured in the same run",
        run: bench::run,
    },
    Command {
        name: "long",
        arguments: "[PART]... [--rounds N] [--shard K/N]",
        summary: "hours of crashes, properties, fuzzing and mutants; goes on where it was stopped",
        run: long::run,
    },
    Command {
        name: "mcp",
        arguments: "[PART]...",
        summary: "official MCP suites, clients and servers against the built binary",
        run: mcp::run,
    },
    Command {
        name: "a2a",
        arguments: "[PART]...",
        summary: "official A2A clients and agents, and what A2A demands, against the built binary",
        run: a2a::run,
    },
    Command {
        name: "faithful",
        arguments: "[SERVER]...",
        summary: "real MCP servers, asked directly and through the built binary: the same answers",
        run: faithful::run,
    },
    Command {
        name: "reference",
        arguments: "",
        summary: "writes docs/policy-reference.md from the guards",
        run: reference::run,
    },
    Command { name: "help", arguments: "", summary: "this page", run: help::run },
];

/// A command line that we do not understand.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            output::complain(format_args!("error: {error:#}"));
            if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn run(arguments: &[String]) -> Result<bool> {
    let Some((name, rest)) = arguments.split_first() else { return help::run(&[]) };
    let name = if matches!(name.as_str(), "--help" | "-h") { "help" } else { name };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        let known: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        let known = known.join(", ");
        return Err(Usage(format!("unknown command `{name}`, expected one of {known}")).into());
    };
    (command.run)(rest)
}

/// Refuses arguments on behalf of a command that takes none.
fn no_arguments(arguments: &[String]) -> Result<()> {
    match arguments.first() {
        None => Ok(()),
        Some(other) => Err(Usage(format!("unknown argument `{other}`, expected none")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Usage, run};

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn an_unknown_command_is_named_together_with_the_known_ones() {
        let error = run(&words("chekc")).unwrap_err();
        assert!(error.is::<Usage>());
        let message = error.to_string();
        assert!(message.contains("`chekc`"), "{message}");
        assert!(
            message.contains(
                "check, test, requirements, deps, fuzz, bench, long, mcp, a2a, faithful, \
                 reference, help"
            ),
            "{message}"
        );
    }

    #[test]
    fn unknown_arguments_are_refused() {
        for line in [
            "check --fast",
            "test all",
            "requirements --jsn",
            "deps x",
            "mcp x",
            "a2a x",
            "faithful x",
            "reference x",
            "help me",
        ] {
            assert!(run(&words(line)).unwrap_err().is::<Usage>(), "{line}");
        }
    }
}
