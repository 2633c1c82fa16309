//! `chio kernel certify`: an authority vouches for a kernel elsewhere.

use std::path::PathBuf;

use anyhow::{Context, Result};
use chio_core::certificate::KernelCertificate;

use crate::files::Out;
use crate::io::Io;
use crate::outcome::Refused;
use crate::store_args::{StoreArgs, block_on};

const HELP: &str = "\
The kernels of a store are certified by that store's authority as they start. For a kernel in
another place, run `chio kernel list` there to learn its key and store, certify it here, and
`chio kernel admit` the certificate there: audits of that store then verify from this authority's
public key.

Example:
  chio kernel certify --kernel ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c \\
    --store-id 019a2b3c-4d5e-7f60-8123-456789abcdef --key authority.key --out certificate.json";

/// Vouch for a kernel elsewhere
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The kernel, by public key or key file
    #[arg(long, value_name = "KEY")]
    kernel: String,
    /// The store that the kernel's log is in
    #[arg(long, value_name = "ID")]
    store_id: String,
    /// Key file of the authority [default: the authority of the store]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["store", "data"])]
    key: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    out: Out,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let kernel = io.public_key("--kernel", &args.kernel)?;
    let authority = match &args.key {
        Some(path) => io.read_key(path)?,
        None => block_on(async {
            let store = args.store.open_existing(io).await?;
            store.authority().await?.context("the store has no authority")
        })?,
    };
    if args.store_id.trim().is_empty() {
        return Err(Refused::new("expected the id of a store, found a blank").into());
    }
    let certificate = KernelCertificate::issue(&authority, kernel, &args.store_id, io.now)
        .map_err(Refused::from)?;
    args.out.write(io, &certificate, ("certified", &certificate.log_id))
}
