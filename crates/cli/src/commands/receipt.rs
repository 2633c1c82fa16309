//! `chio receipt`: what kernels have signed, found, read, checked and issued.

mod bundle;
mod export;
mod filter;
mod find;
mod list;
mod row;
mod show;
mod source;
mod tail;
mod trace;
mod verify;

pub(super) use bundle::read as read_bundle;
pub(super) use filter::Filter;
pub(super) use row::principal_of;

use std::path::Path;

use anyhow::Result;
use chio_core::receipt::LoggedReceipt;

use crate::files::unreadable;
use crate::io::Io;
use crate::outcome::Refused;
use crate::text;

const HELP: &str = "\
A receipt says what was asked and what was decided. The kernel that decided signs it.

Examples:
  chio receipt list --outcome deny --since 1h
  chio receipt verify receipt.json --trusted-key kernel.key";

subcommands! {
    /// Find, read, check and hand out receipts
    #[command(after_help = HELP)]
    List(Box<list::Args>) => list::run,
    Tail(Box<tail::Args>) => tail::run,
    Show(show::Args) => show::run,
    Trace(trace::Args) => trace::run,
    Verify(verify::Args) => verify::run,
    Export(Box<export::Args>) => export::run,
}

/// Reads a receipt of the kind that its members show.
fn read(io: &mut Io<'_>, path: &Path) -> Result<LoggedReceipt> {
    let bytes = io.read(path)?;
    LoggedReceipt::from_slice(&bytes).map_err(|error| {
        if bundle::is_one(&bytes) {
            let file = text::quoted(&path.display().to_string());
            return Refused::new(format!(
                "this is a bundle of receipts: `chio receipt verify --bundle {file}` checks it, \
                 `chio receipt list --bundle {file}` lists what is in it"
            ))
            .into();
        }
        unreadable("a receipt", &error).into()
    })
}

/// The kind of a receipt, as `--json` names it.
const fn kind(receipt: &LoggedReceipt) -> &'static str {
    match receipt {
        LoggedReceipt::Call(_) => "receipt",
        LoggedReceipt::Child(_) => "child_receipt",
    }
}
