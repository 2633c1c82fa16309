//! Bundles: receipts with everything that is needed to verify them.
//!
//! A bundle carries receipts, the checkpoints that cover them, a proof for each that it is in the
//! log, proofs that the checkpoints are of one log, and the authority's certificates of the kernels
//! that signed. The authority's public key, or one kernel's, is enough to check all of it.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

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
#[serde(deny_unknown_fields)]
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
}

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
            check_checkpoint(checkpoint, &trusted, &mut report);
        }
        for evidence in &self.consistency {
            self.check_consistency(evidence, &mut report);
        }
        self.check_each_extends(&mut report);
        if self.entries.is_empty() {
            report.problems.push("expected at least one receipt, found none".to_owned());
        }
        for entry in &self.entries {
            self.check_entry(entry, &trusted, &mut report);
        }
        if report.pending > 0 && !trust.allow_pending {
            let pending = report.pending;
            report.problems.push(format!(
                "{pending} of the receipts are not under a checkpoint yet: export them again later"
            ));
        }
        self.check_repeats(&mut report);
        report
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

    fn checkpoint(&self, log: &str, seq: u64) -> Option<&KernelCheckpoint> {
        self.checkpoints.iter().find(|checkpoint| {
            checkpoint.body.checkpoint_seq == seq && log_id(&checkpoint.body.kernel_key) == log
        })
    }

    fn check_consistency(&self, evidence: &ConsistencyEvidence, report: &mut BundleReport) {
        let (proof, log) = (&evidence.proof, &evidence.log_id);
        let name = format!("checkpoints {} to {} of {log}", proof.from_size, proof.to_size);
        let ends = (self.checkpoint(log, proof.from_size), self.checkpoint(log, proof.to_size));
        match ends {
            (Some(from), Some(to)) if to.extends(from, proof) => {}
            (Some(_), Some(_)) => {
                report.problems.push(format!("{name}: the one is not a beginning of the other"));
            }
            _ => report.problems.push(format!("{name}: not both are in the bundle")),
        }
    }

    /// Every checkpoint but the last of its log must be proved to be a beginning of that.
    fn check_each_extends(&self, report: &mut BundleReport) {
        for checkpoint in &self.checkpoints {
            let key = &checkpoint.body.kernel_key;
            let seq = checkpoint.body.checkpoint_seq;
            let same_log = self.checkpoints.iter().filter(|other| other.body.kernel_key == *key);
            let last = same_log.map(|other| other.body.checkpoint_seq).max().unwrap_or(seq);
            let log = log_id(key);
            let proved = self.consistency.iter().any(|evidence| {
                let sizes = (evidence.proof.from_size, evidence.proof.to_size);
                evidence.log_id == log && sizes == (seq, last)
            });
            if seq != last && !proved {
                let name = format!("checkpoint {seq} of {log}");
                report.problems.push(format!("{name}: no proof that checkpoint {last} extends it"));
            }
        }
    }

    fn check_entry(&self, entry: &BundleEntry, trusted: &[PublicKey], report: &mut BundleReport) {
        report.receipts += 1;
        let (receipt, name) = (&entry.receipt, entry.receipt.id());
        let mut problems = Vec::new();
        if let Err(error) = receipt.verify() {
            problems.push(error.to_string());
        }
        if !trusted.contains(receipt.kernel_key()) {
            problems.push("no trusted authority vouches for the kernel that signed".to_owned());
        }
        if log_id(receipt.kernel_key()) != entry.log_id {
            problems.push("it is not of the log that it is said to be in".to_owned());
        }
        match self.check_inclusion(entry) {
            Ok(true) => report.included += 1,
            Ok(false) => report.pending += 1,
            Err(problem) => problems.push(problem),
        }
        report.problems.extend(problems.into_iter().map(|it| format!("receipt {name}: {it}")));
    }

    /// Whether a receipt is proved to be in its log; `false` while no checkpoint covers it.
    fn check_inclusion(&self, entry: &BundleEntry) -> Result<bool, String> {
        let Some(inclusion) = &entry.inclusion else {
            let same_log = |it: &&KernelCheckpoint| log_id(&it.body.kernel_key) == entry.log_id;
            let ends = self.checkpoints.iter().filter(same_log).map(|it| it.body.batch_end_seq);
            if ends.max().is_some_and(|end| entry.seq <= end) {
                return Err("a checkpoint covers its place, but nothing proves it there".to_owned());
            }
            return Ok(false);
        };
        let Some(checkpoint) = self.checkpoint(&entry.log_id, inclusion.checkpoint_seq) else {
            return Err(format!("checkpoint {} is not in the bundle", inclusion.checkpoint_seq));
        };
        let content = canonical::to_vec(&entry.receipt).map_err(|error| error.to_string())?;
        if inclusion.receipt_seq == entry.seq && inclusion.verify(checkpoint, &content) {
            return Ok(true);
        }
        Err(format!("it is not entry {} under checkpoint {}", entry.seq, inclusion.checkpoint_seq))
    }
}

fn check_checkpoint(
    checkpoint: &KernelCheckpoint,
    trusted: &[PublicKey],
    report: &mut BundleReport,
) {
    report.checkpoints += 1;
    let key = &checkpoint.body.kernel_key;
    let name = format!("checkpoint {} of {}", checkpoint.body.checkpoint_seq, log_id(key));
    if let Err(error) = checkpoint.check_signature() {
        report.problems.push(format!("{name}: {error}"));
    }
    if !trusted.contains(key) {
        report.problems.push(format!("{name}: no trusted authority vouches for its kernel"));
    }
}
