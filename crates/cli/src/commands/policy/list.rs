//! `chio policy list`: the policies that are built in.

use anyhow::Result;
use chio_policy::document::{NodeKind, RULESETS, Ruleset, parse};
use serde_json::{Value, json};

use crate::io::Io;
use crate::outcome::Outcome;

/// Columns of a description.
const WIDTH: usize = 84;

const HELP: &str = "\
Example:
  chio policy list";

/// List the policies that are built in
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    if args.json {
        let row = |it: &Ruleset| json!({"name": it.name, "description": description(it)});
        let rows: Vec<Value> = RULESETS.iter().map(row).collect();
        io.json(&json!({"policies": rows}))?;
        return Ok(Outcome::Well);
    }
    for ruleset in RULESETS {
        let mut name = ruleset.name;
        let mut line = String::new();
        for word in description(ruleset).split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
                io.field(std::mem::take(&mut name), std::mem::take(&mut line))?;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        io.field(name, line)?;
    }
    Ok(Outcome::Well)
}

fn description(ruleset: &Ruleset) -> String {
    let root = parse(ruleset.text, ruleset.name).ok();
    let node = root.as_ref().and_then(|root| root.get("description"));
    match node.map(|node| &node.kind) {
        Some(NodeKind::Text(text)) => text.trim().to_owned(),
        _ => String::new(),
    }
}
