//! `chio capability verify`: whether a token holds, check by check.

use std::path::PathBuf;

use anyhow::Result;
use chio_core::capability::{CapabilityToken, SignatureForm, TokenError, VerifyOptions};
use chio_core::registry::ErrorCode;
use serde::Serialize;

use super::beside::{self, Known};
use super::{TOKEN, view};
use crate::commands::checks::{Checks, or_refused};
use crate::date;
use crate::io::Io;
use crate::outcome::Outcome;
use crate::store_args::StoreArgs;

const HELP: &str = "\
Checks the signature, the window, the delegation chain, whether the issuer is trusted, and whether the
token was revoked. The store is the one that is named, or the one beside the token. The authority of a
store that is named, or of .chio in this folder, is trusted where no --trusted-issuer is named; another
one may have come with the token. A token whose issuer is not trusted proves nothing.

Examples:
  chio capability verify token.json
  chio capability verify token.json --trusted-issuer authority.pub";

/// Check that a token holds
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The token
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// An issuer that you trust, by public key or key file; can be repeated
    #[arg(long, value_name = "KEY")]
    trusted_issuer: Vec<String>,
    #[command(flatten)]
    store: StoreArgs,
    /// Check as if it were this time [default: now]
    #[arg(long, value_name = "TIME", value_parser = date::parse)]
    at: Option<u64>,
    /// How often the token may have been handed on [default: any number of times]
    #[arg(long, value_name = "N")]
    max_depth: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints, besides `valid` and `errors`.
#[derive(Debug, Default, Serialize)]
struct Report {
    signature_valid: bool,
    time_valid: bool,
    chain_valid: bool,
    issuer_trusted: bool,
    /// Whether it was revoked; none where no store was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<bool>,
    signature_form: Option<SignatureForm>,
    unsupported_profile: Option<&'static str>,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let mut trusted = io.public_keys("--trusted-issuer", &args.trusted_issuer)?;
    let now = args.at.unwrap_or(io.now);
    let mut checks = Checks::default();
    let report = match or_refused(io.read_json(&args.file, TOKEN))? {
        Ok(token) => {
            let known = beside::look(io, &args.store, &args.file, &token)?;
            let of_store = known.as_ref().filter(|_| trusted.is_empty());
            let of_store = of_store.and_then(|known| known.authority.clone());
            let by_store = of_store.is_some();
            trusted.extend(of_store);
            let options =
                VerifyOptions { now, trusted_issuers: &trusted, max_chain_depth: args.max_depth };
            let mut report = examine(&token, &options, &mut checks);
            report.revoked = revocation(&token, known.as_ref(), by_store, &mut checks);
            report
        }
        Err(refused) => checks.unreadable(&refused),
    };
    checks.finish(io, args.json, &report)
}

/// Whether the token was revoked, as far as a store says.
fn revocation(
    token: &CapabilityToken,
    known: Option<&Known>,
    by_store: bool,
    checks: &mut Checks,
) -> Option<bool> {
    let Some(Known { store, revoked, .. }) = known else {
        checks.note("revocation", "not looked up: no store is named, and none is beside the token");
        return None;
    };
    if by_store {
        checks.note("", format_args!("it is the authority of the store {store}"));
    }
    let code = ErrorCode::CapabilityRevoked;
    let found = match revoked {
        None => Ok(format!("none, as the store {store} knows")),
        Some(id) if *id == token.id => Err(format!("the token was revoked [{code}]")),
        Some(id) => Err(format!("`{id}`, which it comes from, was revoked [{code}]")),
    };
    Some(!checks.add("revocation", found))
}

fn examine(token: &CapabilityToken, options: &VerifyOptions<'_>, checks: &mut Checks) -> Report {
    let found = token.examine(options);
    checks.note("capability", &token.id);
    let signature_form = found.signature.as_ref().ok().copied();
    let signature = found.signature.as_ref().map(|form| format!("valid{}", view::form_name(*form)));
    let signature_valid = checks.add("signature", signature.map_err(coded));
    let time = found.time.as_ref().map(|()| view::window(token.validity(), options.now));
    let time_valid = checks.add("time", time.map_err(coded));
    let handed_on = view::handed_on(&token.delegation_chain);
    let chain = found.chain.as_ref().map(|()| format!("valid, {handed_on}"));
    let chain_valid = checks.add("chain", chain.map_err(coded));
    let issuer_trusted = found.issuer.is_ok();
    checks.trust("issuer", issuer_trusted, untrusted(token, options));
    let unsupported_profile = token.unsupported_profile();
    if let Some(profile) = unsupported_profile {
        let verifies = if found.is_valid() { "verifies, but" } else { "besides," };
        checks.note("note", format_args!("{verifies} a kernel would deny: {profile}"));
    }
    Report {
        signature_valid,
        time_valid,
        chain_valid,
        issuer_trusted,
        revoked: None,
        signature_form,
        unsupported_profile,
    }
}

/// Why an issuer is not trusted.
fn untrusted(token: &CapabilityToken, options: &VerifyOptions<'_>) -> String {
    let (issuer, code) = (&token.issuer, ErrorCode::CapabilityDenied);
    match options.trusted_issuers {
        [] => format!("no issuer is trusted: name those that are with --trusted-issuer [{code}]"),
        _ => format!("issued by `{issuer}`, which is not among the trusted issuers [{code}]"),
    }
}

/// A failing check in words, with the code of a call that is denied for it.
fn coded(error: &TokenError) -> String {
    format!("{} [{}]", view::reason(error), error.code())
}
