//! `chio policy list`: the policies that are built in.

use anyhow::Result;
use chio_policy::document::{RULESETS, Ruleset};
use chio_yaml::{NodeKind, parse};
use serde_json::{Value, json};

use crate::io::Io;
use crate::text;

/// Columns of a description.
const WIDTH: usize = 68;

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

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    if args.json {
        let row = |it: &Ruleset| json!({"name": it.name, "description": description(it)});
        let rows: Vec<Value> = RULESETS.iter().map(row).collect();
        return io.json(&json!({"policies": rows}));
    }
    for ruleset in RULESETS {
        io.list(ruleset.name, text::wrapped(&description(ruleset), WIDTH))?;
    }
    Ok(())
}

fn description(ruleset: &Ruleset) -> String {
    let root = parse(ruleset.text, ruleset.name).ok();
    let node = root.as_ref().and_then(|root| root.get("description"));
    match node.map(|node| &node.kind) {
        Some(NodeKind::Text(text)) => text.trim().to_owned(),
        _ => String::new(),
    }
}
