//! `chio policy show`: the text of a built-in policy.

use anyhow::{Result, bail};
use chio_policy::document::RULESETS;
use serde_json::json;

use crate::io::Io;

const HELP: &str = "\
The document as it is built in, to be read or to be begun with.

Examples:
  chio policy show default
  chio policy show strict > policy.yaml";

/// Print a policy that is built in
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Its name
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let name = args.name.strip_prefix("chio:").unwrap_or(&args.name);
    let Some(ruleset) = RULESETS.iter().find(|ruleset| ruleset.name == name) else {
        let names: Vec<&str> = RULESETS.iter().map(|ruleset| ruleset.name).collect();
        bail!("there is no built-in policy `{name}`, only {}", names.join(", "));
    };
    if args.json {
        return io.json(&json!({"name": ruleset.name, "text": ruleset.text}));
    }
    io.bytes(ruleset.text.as_bytes())
}
