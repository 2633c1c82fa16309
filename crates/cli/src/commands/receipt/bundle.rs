//! `chio receipt verify --bundle`: an export, checked without the store.

use std::path::{Path, PathBuf};

use anyhow::Result;
use chio_core::bundle::{
    BUNDLE_SCHEMA, BundleEntry, BundleReport, BundleTrust, Coverage, LogCoverage, ReceiptBundle,
};
use serde_json::Value;

use crate::commands::checks::{Checks, or_refused};
use crate::date::iso;
use crate::files::{shown, unreadable};
use crate::io::Io;
use crate::outcome::{Outcome, Refused};
use crate::text::short_id;

/// The largest bundle that is read, in bytes.
const MAX_BUNDLE: u64 = 1 << 30;

pub(super) fn verify(
    io: &mut Io<'_>,
    path: &Path,
    trust: &BundleTrust,
    json: bool,
) -> Result<Outcome> {
    let mut checks = Checks::default();
    let report = match or_refused(read(io, path))? {
        Ok(bundle) => examine(&bundle, trust, &mut checks),
        Err(refused) => checks.unreadable(&refused),
    };
    checks.finish(io, json, &report)
}

/// Whether a text says that it is a bundle.
pub(super) fn is_one(text: &[u8]) -> bool {
    let read = serde_json::from_slice::<Value>(text);
    read.is_ok_and(|it| it.get("schema").and_then(Value::as_str) == Some(BUNDLE_SCHEMA))
}

/// Reads a bundle.
pub(crate) fn read(io: &mut Io<'_>, path: &Path) -> Result<ReceiptBundle> {
    let text = io.read_at_most(path, MAX_BUNDLE)?;
    let bundle = chio_core::strict::object_from_slice(&text);
    bundle.map_err(|error| unreadable("a bundle of receipts", &error).into())
}

/// The receipts of bundles, each as it was signed. Whose key signed it, and whether the bundles hold,
/// is for `chio receipt verify --bundle` to tell.
pub(super) fn entries(io: &mut Io<'_>, files: &[PathBuf]) -> Result<Vec<BundleEntry>> {
    let mut all = Vec::new();
    for file in files {
        let entries = read(io, file)?.entries;
        for entry in &entries {
            entry.receipt.verify().map_err(|error| {
                Refused::new(format!("{}: {}: {error}", shown(file), entry.receipt.id()))
            })?;
        }
        all.extend(entries);
    }
    Ok(all)
}

/// What a bundle has of a log, in a line.
pub(super) fn covers(log: &LogCoverage) -> String {
    let LogCoverage { first, last, log_id, .. } = log;
    let gaps = match log.missing() {
        0 => "without gaps".to_owned(),
        missing => format!("without {missing} of them"),
    };
    let (from, until) = (iso(log.from), iso(log.until));
    let log_id = short_id(log_id);
    format!("{log_id}: places {first} to {last} {gaps}, {from} to {until}")
}

fn examine(bundle: &ReceiptBundle, trust: &BundleTrust, checks: &mut Checks) -> BundleReport {
    let report = bundle.examine(trust);
    checks.note("store", &bundle.store_id);
    checks.note("receipts", report.receipts);
    let pending = match report.pending {
        0 => String::new(),
        pending => format!(", {pending} not under a checkpoint yet"),
    };
    checks.note("in the log", format_args!("{}{pending}", report.included));
    checks.note("checkpoints", report.checkpoints);
    let mut coverage = Coverage::default();
    bundle.entries.iter().for_each(|entry| coverage.note(entry));
    for log in coverage.logs() {
        checks.note("coverage", covers(&log));
    }
    for warning in &report.warnings {
        checks.note("WARNING", warning);
    }
    for problem in &report.problems {
        checks.problem(problem);
    }
    report
}
