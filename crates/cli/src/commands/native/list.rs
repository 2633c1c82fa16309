//! `chio native list`: the capabilities that a kernel knows the caller by.

use anyhow::Result;
use chio_core::capability::CapabilityToken;
use serde_json::json;

use super::endpoint::EndpointArgs;
use crate::date::iso;
use crate::io::Io;
use crate::store_args::block_on;
use crate::table::{Row, Table};
use crate::text;

const HELP: &str = "\
A kernel lists the capabilities of the peer that the connection is bound to (`chio native serve
--peer`); without one it has none to list.

Example:
  chio native list --unix chio.sock";

/// List the capabilities that are valid now
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    endpoint: EndpointArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let capabilities =
        block_on(async { Ok(args.endpoint.connect(io).await?.list_capabilities().await?) })?;
    if args.json {
        return io.json(&json!({"capabilities": capabilities}));
    }
    if capabilities.is_empty() {
        return io.say("none");
    }
    let row = |token: &CapabilityToken| {
        let grants = text::count(token.scope.grants.len(), "grant");
        Row { cells: vec![iso(token.expires_at), token.id.clone(), grants], note: String::new() }
    };
    let rows: Vec<Row> = capabilities.iter().map(row).collect();
    Table::of(&["UNTIL", "ID", "GRANTS"], 0, &rows).write(io, rows)
}
