//! `chio native list`: the capabilities that a kernel knows the caller by.

use anyhow::Result;
use serde_json::json;

use super::endpoint::EndpointArgs;
use crate::date::relative;
use crate::io::Io;
use crate::store_args::block_on;

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
        io.say("none")?;
    }
    for token in capabilities {
        let ends = relative(token.expires_at, io.now);
        io.say(format_args!("{}  ends {ends}, {} grants", token.id, token.scope.grants.len()))?;
    }
    Ok(())
}
