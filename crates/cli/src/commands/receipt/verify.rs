//! `chio receipt verify`: whether a receipt holds, check by check.

use std::path::PathBuf;

use anyhow::{Result, bail};
use chio_core::bundle::BundleTrust;
use chio_core::crypto::PublicKey;
use chio_core::receipt::LoggedReceipt;
use chio_core::signed::Signed;
use serde::Serialize;

use super::{bundle, kind, read};
use crate::commands::checks::{Checks, or_refused};
use crate::io::Io;
use crate::outcome::Outcome;

const HELP: &str = "\
Checks that the receipt is unchanged since it was signed by the key that it names. Whether that key
is one you trust is checked when you say which: without --trusted-key, anybody could have signed.

A bundle that `chio receipt export` made is checked as a whole: every receipt, that it is in the log,
and that an authority that you trust vouches for the kernel that signed.

Examples:
  chio receipt verify receipt.json --trusted-key kernel.pub
  chio receipt verify --bundle day.json --authority authority.pub";

/// Check that a receipt holds
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The receipt, of a call or of what happened inside one
    #[arg(value_name = "FILE", required_unless_present = "bundle", conflicts_with = "bundle")]
    file: Option<PathBuf>,
    /// A bundle of receipts
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// An authority that you trust, by public key or key file, for a bundle; can be repeated
    #[arg(long, value_name = "KEY")]
    authority: Vec<String>,
    /// Accept receipts of a bundle that no checkpoint covers yet
    #[arg(long)]
    allow_pending: bool,
    /// A kernel that you trust, by public key or key file; can be repeated
    #[arg(long, value_name = "KEY")]
    trusted_key: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints, besides `valid` and `errors`. The checks that only a call's receipt has
/// are `null` for a child's.
#[derive(Debug, Serialize)]
struct Report {
    kind: &'static str,
    signature_valid: bool,
    receipt_id_valid: Option<bool>,
    parameter_hash_valid: Option<bool>,
    coherent: Option<bool>,
    signer_trusted: bool,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            kind: "receipt",
            signature_valid: false,
            receipt_id_valid: Some(false),
            parameter_hash_valid: Some(false),
            coherent: Some(false),
            signer_trusted: false,
        }
    }
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let trusted = io.public_keys("--trusted-key", &args.trusted_key)?;
    if let Some(path) = &args.bundle {
        let authorities = io.public_keys("--authority", &args.authority)?;
        let trust =
            BundleTrust { authorities, kernels: trusted, allow_pending: args.allow_pending };
        return bundle::verify(io, path, &trust, args.json);
    }
    let path = args.file.clone().unwrap_or_default();
    let mut checks = Checks::default();
    let read = or_refused(read(io, &path))?;
    if read.is_ok() && (args.allow_pending || !args.authority.is_empty()) {
        bail!(
            "--authority and --allow-pending are for bundles: a receipt alone does not say which \
             authority vouches for its kernel. `chio receipt export --id ID --out bundle.json` \
             writes one, to be checked with --bundle; --trusted-key names a kernel that you trust"
        );
    }
    let report = match read {
        Ok(receipt) => examine(&receipt, &trusted, &mut checks),
        Err(refused) => checks.unreadable(&refused),
    };
    checks.finish(io, args.json, &report)
}

fn examine(receipt: &LoggedReceipt, trusted: &[PublicKey], checks: &mut Checks) -> Report {
    let mut report = Report { kind: kind(receipt), ..Report::default() };
    match receipt {
        LoggedReceipt::Call(receipt) => {
            let found = receipt.examine();
            checks.note("receipt", &receipt.id);
            report.signature_valid = checks.add("signature", found.signature.map(|()| "valid"));
            report.receipt_id_valid = Some(checks.add("receipt id", found.id.map(|()| "valid")));
            let parameters = found.parameter_hash.map(|()| "valid");
            report.parameter_hash_valid = Some(checks.add("parameters", parameters));
            report.coherent = Some(checks.add("coherence", found.coherence.map(|()| "valid")));
        }
        LoggedReceipt::Child(receipt) => {
            checks.note("receipt", format_args!("{} (child)", receipt.id));
            let signature = receipt.check_signature().map(|()| "valid");
            report.signature_valid = checks.add("signature", signature);
            report.receipt_id_valid = None;
            report.parameter_hash_valid = None;
            report.coherent = None;
        }
    }
    let signer = receipt.kernel_key();
    report.signer_trusted = trusted.contains(signer);
    if trusted.is_empty() {
        checks.note("signer", format_args!("{signer} (not checked: no --trusted-key is given)"));
    } else {
        let problem = format!("signed by `{signer}`, which is not among the trusted keys");
        checks.trust("signer", report.signer_trusted, problem);
    }
    report
}
