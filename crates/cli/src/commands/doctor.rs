//! `chio doctor`: whether everything is in order, before it is run.

mod checks;

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use crate::config::{Config, DEFAULT_FILE};
use crate::health::{Check, State};
use crate::io::Io;
use crate::outcome::Outcome;
use crate::runtime::run_server;
use crate::text;

/// Before what goes on in another line.
const INDENT: &str = "       ";

const HELP: &str = "\
Checks chio.yaml, or what `chio up` uses where there is none: the file, the policy, each server (its
command is started and has to introduce itself), addresses, the data directory, the room on its disk,
the store, and whether everything is stopped there.
Nothing is changed. A line for each check, and what to do where something is wrong; exit code 1 then.

Examples:
  chio doctor
  chio doctor --config agents/chio.yaml --json";

/// Check that everything is in order
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The configuration [default: chio.yaml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let mut checks = Vec::new();
    let config = config(args, io, &mut checks)?;
    if let Some(config) = config {
        checks.extend(run_server(checks::all(io, &config))?);
    }
    let wrong = checks.iter().filter(|check| check.state == State::Wrong).count();
    if args.json {
        let found: Vec<Value> = checks.iter().map(Check::document).collect();
        io.json(&json!({"healthy": wrong == 0, "checks": found}))?;
        return Ok(Outcome::of(wrong == 0));
    }
    for check in &checks {
        let Check { state, what, found, to_do } = check;
        let room = io.look.width - INDENT.len();
        let found = text::wrapped(&format!("{what}: {found}"), room);
        let to_do = to_do.iter().flat_map(|to_do| text::wrapped(to_do, room));
        for (at, line) in found.into_iter().chain(to_do).enumerate() {
            match at {
                0 => io.say_verdict("", &format!("{:<5}", state.mark()), &format!("  {line}"))?,
                _ => io.say(format_args!("{INDENT}{line}"))?,
            }
        }
    }
    match wrong {
        0 => io.field("result", "everything is in order")?,
        wrong => {
            io.field("result", format_args!("NOT IN ORDER, {}", text::count(wrong, "problem")))?
        }
    }
    Ok(Outcome::of(wrong == 0))
}

/// The configuration to be checked: none where it cannot be read.
fn config(args: &Args, io: &mut Io<'_>, checks: &mut Vec<Check>) -> Result<Option<Config>> {
    let file = args.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
    let what = file.display().to_string();
    if args.config.is_none() && !io.folder.join(file).exists() {
        let found = "there is none here; what `chio up` uses is checked";
        checks.push(Check::note(what, found).with_advice("`chio init` writes one"));
        return Ok(Some(Config::of_up(io.folder)));
    }
    match Config::read(io, file) {
        Ok(Ok(config)) => {
            let servers = text::count(config.servers.len(), "server");
            checks
                .push(Check::fine(what, format!("{servers}: {}", config.server_ids().join(", "))));
            Ok(Some(config))
        }
        Ok(Err(problems)) => {
            let wrong =
                |it: &chio_yaml::Problem| Check::wrong(it.place.to_string(), it.message.clone());
            checks.extend(problems.iter().map(wrong));
            Ok(None)
        }
        Err(error) => {
            let to_do = "`chio init` writes one, --config names another";
            checks.push(Check::wrong(what, format!("{error:#}")).with_advice(to_do));
            Ok(None)
        }
    }
}
