//! Bundles: receipts with everything that is needed to verify them.
//!
//! A bundle carries receipts, the checkpoints that cover them, a proof for each that it is in the
//! log, proofs that the checkpoints are of one log, and the authority's certificates of the kernels
//! that signed. The authority's public key, or one kernel's, is enough to check all of it.

mod coverage;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use coverage::{Coverage, LogCoverage};

use crate::canonical;
use crate::certificate::KernelCertificate;
use crate::checkpoint::{KernelCheckpoint, ReceiptInclusion, log_id};
use crate::crypto::PublicKey;
use crate::merkle::ConsistencyProof;
use crate::receipt::LoggedReceipt;
use crate::signed::Signed;

/// The schema that every bundle carries.
pub const BUNDLE_SCHEMA: &str = "chio.receipt_bundle.v1";

/// Receipts with everything that is needed to verify them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptBundle {
    /// The authority's certificate of each kernel that signed.
    pub certificates: Vec<KernelCertificate>,
    /// The checkpoints that cover the receipts, and the last one of each log.
    pub checkpoints: Vec<KernelCheckpoint>,
    /// That each checkpoint's chain is the beginning of the last one's.
    pub consistency: Vec<ConsistencyEvidence>,
    /// What the bundle has of each log; none in those of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<LogCoverage>,
    /// The receipts.
    pub entries: Vec<BundleEntry>,
    /// [`BUNDLE_SCHEMA`].
    pub schema: String,
    /// The store that they are from.
    pub store_id: String,
}

/// A proof between two checkpoints of one log, which it names by its sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsistencyEvidence {
    /// The log.
    pub log_id: String,
    /// The proof.
    pub proof: ConsistencyProof,
}

/// One receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenEntry")]
pub struct BundleEntry {
    /// That it is in its log; none while no checkpoint covers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inclusion: Option<ReceiptInclusion>,
    /// Its log.
    pub log_id: String,
    /// The receipt.
    pub receipt: LoggedReceipt,
    /// Its position in the log, from 1.
    pub seq: u64,
    /// Members of the receipt, as it was read, that nothing signs.
    #[serde(skip)]
    pub unsigned: Vec<String>,
}

/// An entry with its receipt as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEntry {
    #[serde(default)]
    inclusion: Option<ReceiptInclusion>,
    log_id: String,
    receipt: Value,
    seq: u64,
}

impl TryFrom<WrittenEntry> for BundleEntry {
    type Error = serde_json::Error;

    fn try_from(written: WrittenEntry) -> Result<Self, serde_json::Error> {
        let WrittenEntry { inclusion, log_id, receipt: text, seq } = written;
        let receipt = LoggedReceipt::deserialize(&text)?;
        // What a reader of signed members does not understand, it drops.
        let understood = serde_json::to_value(&receipt)?;
        let is_signed = |name: &str, value: &Value| {
            name != UNSIGNED && understood.get(name).is_some_and(|found| found == value)
        };
        let members = text.as_object().into_iter().flatten();
        let unsigned = members.filter(|(name, value)| !is_signed(name, value));
        let unsigned = unsigned.map(|(name, _)| name.clone()).collect();
        Ok(Self { inclusion, log_id, receipt, seq, unsigned })
    }
}

/// The member of a receipt that is understood and not signed, and that no check looks at.
const UNSIGNED: &str = "bbs_signature";

/// The keys that a verifier trusts.
#[derive(Debug, Clone, Default)]
pub struct BundleTrust {
    /// Authorities whose certificates count.
    pub authorities: Vec<PublicKey>,
    /// Kernels that need no certificate.
    pub kernels: Vec<PublicKey>,
    /// Whether receipts count that no checkpoint covers yet. The exporter may have left out some of
    /// those.
    pub allow_pending: bool,
}

/// What a verification of a bundle found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BundleReport {
    /// Receipts checked.
    pub receipts: usize,
    /// Receipts proved to be in their log.
    pub included: usize,
    /// Receipts that no checkpoint covers yet.
    pub pending: usize,
    /// Checkpoints checked.
    pub checkpoints: usize,
    /// What the bundle has of each log, if it says that itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<LogCoverage>,
    /// What is not wrong, and still matters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Everything that is wrong.
    #[serde(skip)]
    pub problems: Vec<String>,
}

impl BundleReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }
}

impl ReceiptBundle {
    /// Checks everything and reports everything that is wrong.
    #[must_use]
    pub fn examine(&self, trust: &BundleTrust) -> BundleReport {
        let mut report = BundleReport::default();
        if self.schema != BUNDLE_SCHEMA {
            let found = &self.schema;
            report.problems.push(format!("expected schema `{BUNDLE_SCHEMA}`, found `{found}`"));
        }
        let trusted = self.trusted_kernels(trust, &mut report);
        for checkpoint in &self.checkpoints {
            check_checkpoint(checkpoint, &mut report);
        }
        let checkpoints = self.by_number();
        for evidence in &self.consistency {
            check_consistency(evidence, &checkpoints, &mut report);
        }
        self.check_each_extends(&mut report);
        self.check_coverage(&mut report);
        if self.entries.is_empty() {
            report.problems.push("expected at least one receipt, found none".to_owned());
        }
        let ends = self.ends();
        for entry in &self.entries {
            let end = ends.get(entry.receipt.kernel_key()).copied();
            check_entry(entry, (&checkpoints, end), &mut report);
        }
        if report.pending > 0 && !trust.allow_pending {
            let pending = report.pending;
            report.problems.push(format!(
                "{pending} of the receipts are not under a checkpoint yet: export them again later"
            ));
        }
        self.check_repeats(&mut report);
        self.check_trust(&trusted, &mut report);
        report
    }

    /// The kernels that signed must be trusted. Those that are not are told once for each set of
    /// authorities that certified them, however much they signed.
    fn check_trust(&self, trusted: &[PublicKey], report: &mut BundleReport) {
        let signers = self.entries.iter().map(|entry| entry.receipt.kernel_key());
        let signers = signers.chain(self.checkpoints.iter().map(|it| &it.body.kernel_key));
        let strangers: BTreeSet<&PublicKey> =
            signers.filter(|key| !trusted.contains(key)).collect();
        let mut by_authority: BTreeMap<Vec<&PublicKey>, Vec<&PublicKey>> = BTreeMap::new();
        for kernel in strangers {
            let its = self.certificates.iter().filter(|it| it.kernel_key == *kernel);
            let authorities: BTreeSet<&PublicKey> = its.map(|it| &it.authority).collect();
            by_authority.entry(authorities.into_iter().collect()).or_default().push(kernel);
        }
        for (authorities, kernels) in by_authority {
            let found = match authorities.is_empty() {
                true => "nothing certifies it".to_owned(),
                false => format!("it is certified by {}", named(&authorities)),
            };
            let kernels = named(&kernels);
            report.problems.push(format!(
                "no trusted authority vouches for the kernel that signed, {kernels}: {found}"
            ));
        }
    }

    /// Each receipt, position in a log and checkpoint must occur once.
    fn check_repeats(&self, report: &mut BundleReport) {
        let (mut ids, mut positions, mut numbers) =
            (HashSet::new(), HashSet::new(), HashSet::new());
        for entry in &self.entries {
            let name = entry.receipt.id();
            if !ids.insert(name) || !positions.insert((&entry.log_id, entry.seq)) {
                report.problems.push(format!("receipt {name}: it or its place is there twice"));
            }
        }
        for checkpoint in &self.checkpoints {
            let (log, seq) = (log_id(&checkpoint.body.kernel_key), checkpoint.body.checkpoint_seq);
            if !numbers.insert((log.clone(), seq)) {
                report.problems.push(format!("checkpoint {seq} of {log}: it is there twice"));
            }
        }
    }

    /// The kernels whose signatures count: pinned ones, and those that a trusted authority
    /// certified for this store.
    fn trusted_kernels(&self, trust: &BundleTrust, report: &mut BundleReport) -> Vec<PublicKey> {
        let mut trusted = trust.kernels.clone();
        for certificate in &self.certificates {
            let log = &certificate.log_id;
            if let Err(error) = certificate.check_signature() {
                report.problems.push(format!("certificate of {log}: {error}"));
            } else if certificate.store_id != self.store_id {
                report.problems.push(format!("certificate of {log}: it is for another store"));
            } else if trust.authorities.contains(&certificate.authority) {
                trusted.push(certificate.kernel_key.clone());
            }
        }
        trusted
    }

    fn by_number(&self) -> Numbered<'_> {
        let named = self.checkpoints.iter().map(|checkpoint| {
            let body = &checkpoint.body;
            ((log_id(&body.kernel_key), body.checkpoint_seq), checkpoint)
        });
        named.collect()
    }

    /// The last place that a checkpoint covers, of each kernel's log.
    fn ends(&self) -> HashMap<&PublicKey, u64> {
        let mut ends = HashMap::new();
        for body in self.checkpoints.iter().map(|checkpoint| &checkpoint.body) {
            let end = ends.entry(&body.kernel_key).or_insert(0);
            *end = body.batch_end_seq.max(*end);
        }
        ends
    }

    /// Every checkpoint but the last of its log must be proved to be a beginning of that.
    fn check_each_extends(&self, report: &mut BundleReport) {
        let sizes = |it: &ConsistencyEvidence| (it.proof.from_size, it.proof.to_size);
        let proved: HashSet<_> =
            self.consistency.iter().map(|it| (it.log_id.as_str(), sizes(it))).collect();
        let mut last: HashMap<&PublicKey, u64> = HashMap::new();
        for body in self.checkpoints.iter().map(|checkpoint| &checkpoint.body) {
            let seq = last.entry(&body.kernel_key).or_insert(0);
            *seq = body.checkpoint_seq.max(*seq);
        }
        for body in self.checkpoints.iter().map(|checkpoint| &checkpoint.body) {
            let (log, seq) = (log_id(&body.kernel_key), body.checkpoint_seq);
            let last = last.get(&body.kernel_key).copied().unwrap_or(seq);
            if seq != last && !proved.contains(&(log.as_str(), (seq, last))) {
                let name = format!("checkpoint {seq} of {log}");
                report.problems.push(format!("{name}: no proof that checkpoint {last} extends it"));
            }
        }
    }

    /// What is there of each log must be what the bundle says, if it does. Warns of what is not there.
    fn check_coverage(&self, report: &mut BundleReport) {
        let mut found = Coverage::default();
        self.entries.iter().for_each(|entry| found.note(entry));
        let found = found.logs();
        if !self.coverage.is_empty() && self.coverage != found {
            report.problems.push("expected what it says of its coverage, found other".to_owned());
        }
        for log in found.iter().filter(|log| !log.gaps.is_empty()) {
            let LogCoverage { first, last, log_id, .. } = log;
            report.warnings.push(format!(
                "{log_id}: {} of the places from {first} to {last} are not in the bundle",
                log.missing()
            ));
        }
        for entry in self.entries.iter().filter(|entry| !entry.unsigned.is_empty()) {
            let (id, members) = (entry.receipt.id(), entry.unsigned.join("`, `"));
            report.warnings.push(format!("receipt {id}: nothing signs its members `{members}`"));
        }
        report.coverage.clone_from(&self.coverage);
    }
}

fn named(keys: &[&PublicKey]) -> String {
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

/// Checkpoints by log and number.
type Numbered<'a> = HashMap<(String, u64), &'a KernelCheckpoint>;

fn check_consistency(
    evidence: &ConsistencyEvidence,
    checkpoints: &Numbered<'_>,
    report: &mut BundleReport,
) {
    let (proof, log) = (&evidence.proof, &evidence.log_id);
    let name = format!("checkpoints {} to {} of {log}", proof.from_size, proof.to_size);
    let end = |seq| checkpoints.get(&(log.clone(), seq));
    match (end(proof.from_size), end(proof.to_size)) {
        (Some(from), Some(to)) if to.extends(from, proof) => {}
        (Some(_), Some(_)) => {
            report.problems.push(format!("{name}: the one is not a beginning of the other"));
        }
        _ => report.problems.push(format!("{name}: not both are in the bundle")),
    }
}

/// Checks a receipt against all checkpoints, and the last place of its log that they cover.
fn check_entry(
    entry: &BundleEntry,
    (checkpoints, end): (&Numbered<'_>, Option<u64>),
    report: &mut BundleReport,
) {
    report.receipts += 1;
    let (receipt, name) = (&entry.receipt, entry.receipt.id());
    let mut problems = Vec::new();
    if let Err(error) = receipt.verify() {
        problems.push(error.to_string());
    }
    if log_id(receipt.kernel_key()) != entry.log_id {
        problems.push("it is not of the log that it is said to be in".to_owned());
    }
    match check_inclusion(entry, checkpoints, end) {
        Ok(true) => report.included += 1,
        Ok(false) => report.pending += 1,
        Err(problem) => problems.push(problem),
    }
    report.problems.extend(problems.into_iter().map(|it| format!("receipt {name}: {it}")));
}

/// Whether a receipt is proved to be in its log; `false` while no checkpoint covers it.
fn check_inclusion(
    entry: &BundleEntry,
    checkpoints: &Numbered<'_>,
    end: Option<u64>,
) -> Result<bool, String> {
    let Some(inclusion) = &entry.inclusion else {
        if end.is_some_and(|end| entry.seq <= end) {
            return Err("a checkpoint covers its place, but nothing proves it there".to_owned());
        }
        return Ok(false);
    };
    let number = inclusion.checkpoint_seq;
    let Some(checkpoint) = checkpoints.get(&(entry.log_id.clone(), number)) else {
        return Err(format!("checkpoint {number} is not in the bundle"));
    };
    let content = canonical::to_vec(&entry.receipt).map_err(|error| error.to_string())?;
    if inclusion.receipt_seq == entry.seq && inclusion.verify(checkpoint, &content) {
        return Ok(true);
    }
    Err(format!("it is not entry {} under checkpoint {number}", entry.seq))
}

fn check_checkpoint(checkpoint: &KernelCheckpoint, report: &mut BundleReport) {
    report.checkpoints += 1;
    let key = &checkpoint.body.kernel_key;
    let name = format!("checkpoint {} of {}", checkpoint.body.checkpoint_seq, log_id(key));
    if let Err(error) = checkpoint.check_signature() {
        report.problems.push(format!("{name}: {error}"));
    }
}
