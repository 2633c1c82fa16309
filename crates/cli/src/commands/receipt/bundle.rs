//! `chio receipt verify --bundle`: an export, checked without the store.

use std::path::Path;

use anyhow::Result;
use chio_core::bundle::{BundleReport, BundleTrust, Coverage, LogCoverage, ReceiptBundle};

use crate::commands::checks::{Checks, or_refused};
use crate::date::utc;
use crate::files::unreadable;
use crate::io::Io;
use crate::outcome::Outcome;

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

/// Reads a bundle.
pub(crate) fn read(io: &mut Io<'_>, path: &Path) -> Result<ReceiptBundle> {
    let text = io.read_at_most(path, MAX_BUNDLE)?;
    let bundle = chio_core::strict::object_from_slice(&text);
    bundle.map_err(|error| unreadable("a bundle of receipts", &error).into())
}

/// What a bundle has of a log, in a line.
pub(super) fn covers(log: &LogCoverage) -> String {
    let LogCoverage { first, last, log_id, .. } = log;
    let gaps = match log.missing() {
        0 => "without gaps".to_owned(),
        missing => format!("without {missing} of them"),
    };
    let (from, until) = (utc(log.from), utc(log.until));
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
