//! `chio manifest verify`: whether a signed manifest holds, check by check.

use std::path::PathBuf;

use anyhow::Result;
use chio_core::crypto::PublicKey;
use chio_core::manifest::SignedManifest;
use chio_core::signed::{ArtifactError, Signed};
use serde::Serialize;

use crate::commands::checks::{Checks, or_refused};
use crate::io::Io;
use crate::outcome::Outcome;
use crate::text;

const HELP: &str = "\
Checks the manifest's rules and its signature; with --expected-key also that the signer is the tool
server you mean. Without it, anybody could have signed.

Example:
  chio manifest verify manifest.signed.json --expected-key server.key";

/// Check that a signed manifest holds
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The signed manifest
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The tool server that you mean, by public key or key file
    #[arg(long, value_name = "KEY")]
    expected_key: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints, besides `valid` and `errors`.
#[derive(Debug, Default, Serialize)]
struct Report {
    structure_valid: bool,
    signature_valid: bool,
    /// Whether the signer is the expected one; nothing when none is expected.
    signer_trusted: Option<bool>,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let expected = args.expected_key.as_deref();
    let expected = expected.map(|key| io.public_key("--expected-key", key)).transpose()?;
    let mut checks = Checks::default();
    let mut report = match or_refused(io.read_json(&args.file, "a signed manifest"))? {
        Ok(signed) => examine(&signed, expected.as_ref(), &mut checks),
        Err(refused) => checks.unreadable::<Report>(&refused),
    };
    if expected.is_some() {
        report.signer_trusted.get_or_insert(false);
    }
    checks.finish(io, args.json, &report)
}

fn examine(signed: &SignedManifest, expected: Option<&PublicKey>, checks: &mut Checks) -> Report {
    let SignedManifest { manifest, signature, signer_key } = signed;
    checks.note(
        "server",
        format_args!("{} ({} {})", manifest.server_id, manifest.name, manifest.version),
    );
    let tools = text::count(manifest.tools.len(), "tool");
    let structure_valid =
        checks.add("structure", signed.check_structure().map(|()| format!("valid, {tools}")));
    let signed_bytes = signed.signing_input().map_err(ArtifactError::from);
    let matches = signed_bytes.and_then(|bytes| Ok(signer_key.check(&bytes, signature)?));
    let signature_valid = checks.add("signature", matches.map(|()| "valid"));
    let signer_trusted = expected.map(|expected| expected == signer_key);
    match (expected, signer_trusted) {
        (Some(expected), Some(trusted)) => {
            let problem = format!("signed by `{signer_key}`, expected `{expected}`");
            checks.trust("signer", trusted, problem);
        }
        _ => checks
            .note("signer", format_args!("{signer_key} (not checked: no --expected-key is given)")),
    }
    Report { structure_valid, signature_valid, signer_trusted }
}
