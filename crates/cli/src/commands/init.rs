//! `chio init`: a configuration to begin with.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use crate::config::DEFAULT_FILE;
use crate::files::{Access, shown};
use crate::io::Io;
use crate::{program, text};

const HELP: &str = "\
Writes chio.yaml: servers, policy, edges and store, with comments that say how to change them. It
works as it is, with the demo tools; a file that is there is kept.

Examples:
  chio init
  chio init my-agent && cd my-agent && chio serve";

const STARTER: &str = include_str!("init/chio.yaml");

/// Write a configuration to begin with
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The folder to write it into, which is made when it is not there
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let here = args.folder == Path::new(".");
    let file = if here { PathBuf::from(DEFAULT_FILE) } else { args.folder.join(DEFAULT_FILE) };
    fs::create_dir_all(io.folder.join(&args.folder))
        .with_context(|| format!("cannot make {}", shown(&args.folder)))?;
    io.write_file(&file, STARTER.as_bytes(), Access::Ordinary, args.force)?;
    if args.json {
        return io.json(&json!({"written_to": file.display().to_string()}));
    }
    io.field("written to", file.display())?;
    io.say("")?;
    io.say("Next:")?;
    let (chio, file) = (program::typed(), text::quoted(&file.display().to_string()));
    let config = if here { String::new() } else { format!(" --config {file}") };
    io.say(format_args!("  {chio} doctor{config}"))?;
    io.say(format_args!("  {chio} serve{config}"))
}
