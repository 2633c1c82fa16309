//! `chio receipt`: what a kernel has signed, read and checked.

mod show;
mod verify;

use std::path::Path;

use anyhow::Result;
use chio_core::receipt::{ChildReceipt, ChioReceipt};
use chio_core::strict;
use clap::Subcommand;
use serde_json::Value;

use crate::files::unreadable;
use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
A receipt says what was asked and what was decided. The kernel that decided signs it.

Example:
  chio receipt verify receipt.json --trusted-key kernel.key";

/// Read and check receipts
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub(crate) enum Command {
    Show(show::Args),
    Verify(verify::Args),
}

impl Command {
    pub(super) fn run(&self, io: &mut Io<'_>) -> Result<Outcome> {
        match self {
            Self::Show(args) => show::run(args, io),
            Self::Verify(args) => verify::run(args, io),
        }
    }
}

/// A receipt of either kind.
#[derive(Debug)]
enum Receipt {
    /// Of a call.
    Call(Box<ChioReceipt>),
    /// Of what happened inside a call.
    Child(Box<ChildReceipt>),
}

impl Receipt {
    /// Reads a receipt of the kind that its members show.
    fn read(io: &mut Io<'_>, path: &Path) -> Result<Self> {
        const WHAT: &str = "a receipt";
        let text = io.read(path)?;
        let members: Value = strict::from_slice(&text).map_err(|error| unreadable(WHAT, &error))?;
        // Members that only one kind has; any other may be an extra that nobody signed.
        let has = |member| members.get(member).is_some();
        let is_child = has("terminal_state") && !has("receipt_kind");
        let receipt = if is_child {
            strict::object_from_slice(&text).map(Box::new).map(Self::Child)
        } else {
            strict::object_from_slice(&text).map(Box::new).map(Self::Call)
        };
        let what = if is_child { "a child receipt" } else { WHAT };
        receipt.map_err(|error| unreadable(what, &error).into())
    }

    /// The kind, as `--json` names it.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Call(_) => "receipt",
            Self::Child(_) => "child_receipt",
        }
    }
}
