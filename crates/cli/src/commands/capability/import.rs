//! `chio capability import`: tokens are made known to a store.

use std::path::PathBuf;

use anyhow::Result;
use chio_core::capability::{CapabilityToken, TokenError};
use chio_core::crypto::PublicKey;
use chio_core::registry::ErrorCode;
use chio_kernel::store::SharedStore;
use serde_json::json;

use super::TOKEN;
use crate::io::Io;
use crate::outcome::Refused;
use crate::store_args::{StoreArgs, block_on};

const HELP: &str = "\
A token that was handed on is accepted only where the tokens that it comes from are known. Tokens
become known when they are issued into the store or presented in a call; others are imported.

Example:
  chio capability import parent.json grandparent.json";

/// Make tokens known to a store
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The tokens
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Another issuer that you trust, besides the store's authority; can be repeated
    #[arg(long, value_name = "KEY")]
    trusted_issuer: Vec<String>,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let tokens = block_on(import(args, io))?;
    if args.json {
        let ids: Vec<&str> = tokens.iter().map(|token| token.id.as_str()).collect();
        io.json(&json!({"imported": ids}))?;
    }
    Ok(())
}

async fn import(args: &Args, io: &mut Io<'_>) -> Result<Vec<CapabilityToken>> {
    let open = args.store.open_existing(io).await?;
    let mut trusted = io.public_keys("--trusted-issuer", &args.trusted_issuer)?;
    trusted.extend(open.authority_public().await?);
    let mut tokens = Vec::new();
    // All are read and checked before any is kept.
    for file in &args.files {
        let token: CapabilityToken = io.read_json(file, TOKEN)?;
        check(&token, &trusted).map_err(|error| {
            Refused::with_code(format!("token `{}`: {error}", token.id), error.code())
        })?;
        if let Some(profile) = token.unsupported_profile() {
            let message =
                format!("token `{}` is of a profile that no kernel takes: {profile}", token.id);
            return Err(Refused::with_code(message, ErrorCode::CapabilityDenied).into());
        }
        tokens.push(token);
    }
    let store = open.shared();
    for token in &tokens {
        remember(&store, token).await?;
        if !args.json {
            io.field("imported", &token.id)?;
        }
    }
    Ok(tokens)
}

fn check(token: &CapabilityToken, trusted: &[PublicKey]) -> Result<(), TokenError> {
    token.check_issuer(trusted)?;
    token.check_token_signature()?;
    token.check_chain(None)
}

/// Keeps a token that was checked or just signed.
pub(super) async fn remember(store: &SharedStore, token: &CapabilityToken) -> Result<()> {
    if store.remember(token).await? {
        return Ok(());
    }
    let message = format!("another token with the id `{}` is known to the store", token.id);
    Err(Refused::with_code(message, ErrorCode::CapabilityDenied).into())
}
