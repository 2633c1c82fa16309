//! `chio policy`: documents that say which calls are allowed, read, explained and tried.

mod check;
mod explain;
mod init;
mod list;
mod place;
mod shadowed;
mod show;
mod test;

use anyhow::Result;
use clap::Subcommand;

use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
A policy is a document that says which calls are allowed, which are denied, and which wait for an
approval. It is a file, or one of those that are built in.

Examples:
  chio policy init policy.yaml
  chio policy check policy.yaml
  chio policy explain policy.yaml --tool read_file --args '{\"path\": \"/workspace/.env\"}'
  chio policy test policy.yaml cases.yaml
  chio up --policy policy.yaml";

/// Write, check, explain and test policies
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    Init(init::Args),
    Check(check::Args),
    Explain(Box<explain::Args>),
    Test(test::Args),
    List(list::Args),
    Show(show::Args),
    Shadowed(Box<shadowed::Args>),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::Init(args) => init::run(args, io),
            Self::Check(args) => check::run(args, io),
            Self::Explain(args) => explain::run(args, io),
            Self::Test(args) => test::run(args, io),
            Self::List(args) => list::run(args, io),
            Self::Show(args) => show::run(args, io),
            Self::Shadowed(args) => shadowed::run(args, io),
        }
    }
}
