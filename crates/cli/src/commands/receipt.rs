//! `chio receipt`: what kernels have signed, found, read, checked and issued.

mod bundle;
mod export;
mod filter;
mod find;
mod list;
mod row;
mod show;
mod tail;
mod trace;
mod verify;

pub(super) use bundle::read as read_bundle;
pub(super) use filter::Filter;

use std::path::Path;

use anyhow::Result;
use chio_core::receipt::LoggedReceipt;
use clap::Subcommand;

use crate::files::unreadable;
use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
A receipt says what was asked and what was decided. The kernel that decided signs it.

Examples:
  chio receipt list --outcome deny --since 1h
  chio receipt verify receipt.json --trusted-key kernel.key";

/// Find, read, check and hand out receipts
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    List(Box<list::Args>),
    Tail(Box<tail::Args>),
    Show(show::Args),
    Trace(trace::Args),
    Verify(verify::Args),
    Export(Box<export::Args>),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::List(args) => list::run(args, io),
            Self::Tail(args) => tail::run(args, io),
            Self::Show(args) => show::run(args, io),
            Self::Trace(args) => trace::run(args, io),
            Self::Verify(args) => verify::run(args, io),
            Self::Export(args) => export::run(args, io),
        }
    }
}

/// Reads a receipt of the kind that its members show.
fn read(io: &mut Io<'_>, path: &Path) -> Result<LoggedReceipt> {
    LoggedReceipt::from_slice(&io.read(path)?)
        .map_err(|error| unreadable("a receipt", &error).into())
}

/// The kind of a receipt, as `--json` names it.
const fn kind(receipt: &LoggedReceipt) -> &'static str {
    match receipt {
        LoggedReceipt::Call(_) => "receipt",
        LoggedReceipt::Child(_) => "child_receipt",
    }
}
