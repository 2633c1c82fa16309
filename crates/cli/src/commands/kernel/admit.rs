//! `chio kernel admit`: a certificate is taken into a store.

use std::path::PathBuf;

use anyhow::Result;
use chio_core::certificate::KernelCertificate;
use chio_core::signed::Signed;

use crate::io::Io;
use crate::outcome::Refused;
use crate::store_args::{StoreArgs, block_on, refused};

const HELP: &str = "\
Example:
  chio kernel admit certificate.json --authority authority.pub";

/// Take an authority's certificate of a kernel into the store
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The certificate
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The authority that you expect, by public key or key file
    #[arg(long, value_name = "KEY")]
    authority: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let certificate: KernelCertificate = io.read_json(&args.file, "a kernel certificate")?;
    certificate.check_signature().map_err(Refused::from)?;
    if let Some(text) = &args.authority {
        let expected = io.public_key("--authority", text)?;
        if certificate.authority != expected {
            let found = &certificate.authority;
            let message = format!("expected a certificate by `{expected}`, found one by `{found}`");
            return Err(Refused::new(message).into());
        }
    }
    block_on(async {
        let store = args.store.open_existing(io).await?.shared();
        let id = store.store_id().await?;
        if id != certificate.store_id {
            let found = &certificate.store_id;
            let message = format!("expected a certificate for store `{id}`, found `{found}`");
            return Err(Refused::new(message).into());
        }
        store.admit(&certificate).await.map_err(refused)
    })?;
    if args.json {
        return io.json(&certificate);
    }
    io.field("admitted", &certificate.log_id)?;
    io.field("authority", &certificate.authority)
}
