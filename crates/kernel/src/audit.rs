//! Audit: a whole store re-verified, every receipt, leaf, checkpoint and link, by nothing but the
//! authority's public key; and budgets and revocations against what receipts say of them.

mod books;

use std::collections::HashSet;

use chio_core::canonical;
use chio_core::certificate::KernelCertificate;
use chio_core::checkpoint::KernelCheckpoint;
use chio_core::crypto::PublicKey;
use chio_core::hash::{Hash, sha256};
use chio_core::merkle::{Frontier, leaf_hash};
use chio_core::receipt::LoggedReceipt;
use chio_core::signed::Signed;
use serde::Serialize;

use books::{Books, Said};

use crate::mark::{Marks, regressions};
use crate::store::{LogEntry, LogStore, LogSummary, Store, StoreResult};

/// Entries and checkpoints that are read at once.
const PAGE: usize = 2000;
/// Problems that are told one by one; the rest is counted.
const MAX_TOLD: usize = 100;

/// What an audit trusts to begin with.
#[derive(Debug, Clone, Default)]
pub struct AuditTrust {
    /// Authorities whose certificates count.
    pub authorities: Vec<PublicKey>,
    /// Kernels that need no certificate.
    pub kernels: Vec<PublicKey>,
}

/// How far an audit has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditProgress {
    /// Entries looked at.
    pub done: u64,
    /// Entries in all, as of the beginning.
    pub total: u64,
}

/// What an audit found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// Each log.
    pub logs: Vec<LogAudit>,
    /// What is wrong with logs that are not there, and with the keys of the store.
    pub missing: Vec<String>,
    /// What is wrong with what all logs share: budgets, revocations, tokens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub store: Vec<String>,
    /// How many problems there are in all.
    pub problems: u64,
}

impl AuditReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.problems == 0
    }

    /// Adds what the store has no more of what these marks say. They were read before the audit.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn compare<S: Store + ?Sized>(
        &mut self,
        store: &S,
        marks: &Marks,
    ) -> StoreResult<()> {
        for regression in regressions(store, marks).await? {
            self.blame(regression.log_id.as_deref(), regression.problem);
        }
        Ok(())
    }

    /// Adds a problem of a log, or of the store.
    pub fn blame(&mut self, log_id: Option<&str>, problem: String) {
        self.problems += 1;
        let Some(log_id) = log_id else {
            if self.store.len() < MAX_TOLD {
                self.store.push(problem);
            }
            return;
        };
        match self.logs.iter_mut().find(|log| log.log_id == log_id) {
            Some(log) => log.blame(problem),
            None => self.missing.push(format!("{log_id}: {problem}")),
        }
    }
}

/// What an audit found in one log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogAudit {
    /// The log.
    pub log_id: String,
    /// The kernel that writes it.
    pub kernel_key: PublicKey,
    /// Whether an authority vouches for that kernel.
    pub certified: bool,
    /// Receipts.
    pub entries: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Receipts that no checkpoint covers yet.
    pub pending: u64,
    /// Calls that have begun and not ended.
    pub open_intents: u64,
    /// What is wrong, the first ones.
    pub problems: Vec<String>,
    /// How much is wrong.
    pub problem_count: u64,
}

impl LogAudit {
    fn blame(&mut self, problem: String) {
        self.problem_count += 1;
        if self.problems.len() < MAX_TOLD {
            self.problems.push(problem);
        }
    }
}

/// Re-verifies every log of a store.
///
/// # Errors
/// When the store does not answer; what it answers wrongly is in the report.
pub async fn audit(
    store: &(impl Store + ?Sized),
    trust: &AuditTrust,
    mut progress: impl FnMut(AuditProgress) + Send,
) -> StoreResult<AuditReport> {
    let (store_id, logs) = (store.store_id().await?, store.logs().await?);
    let mut at = AuditProgress { done: 0, total: logs.iter().map(|log| log.entries).sum() };
    let mut report = AuditReport::default();
    let mut seen = Seen::default();
    for summary in logs {
        let mut found = examine_certificate(&summary, &store_id, trust);
        let mut reader = LogReader::new(&summary);
        loop {
            let page = store.entries(&summary.log_id, reader.next, PAGE).await?;
            let Some(last) = page.last() else { break };
            let next = last.seq + 1;
            let checked = tokio::task::spawn_blocking(move || check_all(&page)).await;
            let Ok(checked) = checked else {
                found.blame(format!("entries from {}: the check broke off", reader.next));
                break;
            };
            at.done += u64::try_from(checked.len()).unwrap_or_default();
            reader.take(checked, &mut seen, &mut found);
            reader.next = next;
            reader.check_covered(store, &mut found).await?;
            progress(at);
        }
        reader.check_covered(store, &mut found).await?;
        reader.finish(&mut found);
        report.problems += found.problem_count;
        report.logs.push(found);
    }
    for problem in seen.books.problems(store).await? {
        report.blame(None, problem);
    }
    Ok(report)
}

/// What was seen in all logs so far.
#[derive(Default)]
struct Seen {
    /// Digests of what may occur only once.
    names: HashSet<[u8; 32]>,
    books: Books,
}

fn examine_certificate(summary: &LogSummary, store_id: &str, trust: &AuditTrust) -> LogAudit {
    let mut found = LogAudit {
        log_id: summary.log_id.clone(),
        kernel_key: summary.kernel_key.clone(),
        certified: false,
        entries: 0,
        checkpoints: 0,
        pending: 0,
        open_intents: summary.open_intents,
        problems: Vec::new(),
        problem_count: 0,
    };
    // Without a trusted authority nothing is certified: any key can sign a certificate.
    let vouched =
        |certificate: &KernelCertificate| trust.authorities.contains(&certificate.authority);
    for certificate in &summary.certificates {
        if let Err(error) = certificate.check_signature() {
            found.blame(format!("certificate: {error}"));
        } else if certificate.kernel_key != summary.kernel_key || certificate.store_id != store_id {
            found.blame("certificate: it is of another kernel or store".to_owned());
        } else if vouched(certificate) {
            found.certified = true;
        }
    }
    if !found.certified && !trust.kernels.contains(&summary.kernel_key) {
        let authorities = summary.certificates.iter().map(|it| format!("`{}`", it.authority));
        let problem = match authorities.collect::<Vec<_>>() {
            none if none.is_empty() => "no authority vouches for this kernel".to_owned(),
            some => format!(
                "certificate: expected an authority that is trusted, found {}",
                some.join(", ")
            ),
        };
        found.blame(problem);
    }
    if chio_core::checkpoint::log_id(&summary.kernel_key) != summary.log_id {
        found.blame("the log is not named after its kernel's key".to_owned());
    }
    found
}

/// One entry after its check.
struct Checked {
    seq: u64,
    leaf: Hash,
    /// Digests of what may occur only once.
    names: Vec<[u8; 32]>,
    said: Said,
    signer: Option<PublicKey>,
    problem: Option<String>,
}

/// Checks entries on every core.
fn check_all(page: &[LogEntry]) -> Vec<Checked> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = page.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = page
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(check_entry).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
    })
}

fn check_entry(entry: &LogEntry) -> Checked {
    let leaf = leaf_hash(&entry.body);
    let receipt = match LoggedReceipt::from_slice(&entry.body) {
        Ok(receipt) => receipt,
        Err(error) => {
            let problem = Some(format!("this is not a receipt: {error}"));
            let (seq, names, said) = (entry.seq, Vec::new(), Said::Nothing);
            return Checked { seq, leaf, names, said, signer: None, problem };
        }
    };
    let mut names = vec![sha256(receipt.id().as_bytes())];
    names.extend(receipt.request_id().map(|id| sha256(id.as_bytes())));
    let problem = match (receipt.verify(), canonical::to_vec(&receipt)) {
        (Err(error), _) => Some(error.to_string()),
        (Ok(()), Ok(bytes)) if bytes == entry.body => None,
        (Ok(()), _) => Some("expected the canonical form, found another".to_owned()),
    };
    let problem = problem.map(|problem| format!("receipt {}: {problem}", receipt.id()));
    // What a receipt says counts if it holds.
    let said = if problem.is_none() { Said::by(&receipt) } else { Said::Nothing };
    let signer = Some(receipt.kernel_key().clone());
    Checked { seq: entry.seq, leaf, names, said, signer, problem }
}

/// Reads and checks one log.
struct LogReader<'a> {
    summary: &'a LogSummary,
    /// The next entry to read.
    next: u64,
    /// The next entry that is expected.
    expected: u64,
    /// Leaves from the first entry on that no checked checkpoint covers.
    leaves: Vec<Hash>,
    previous: Option<KernelCheckpoint>,
    chain: Frontier,
}

impl<'a> LogReader<'a> {
    fn new(summary: &'a LogSummary) -> Self {
        let (next, expected, leaves) = (1, 1, Vec::new());
        Self { summary, next, expected, leaves, previous: None, chain: Frontier::default() }
    }

    fn take(&mut self, checked: Vec<Checked>, seen: &mut Seen, found: &mut LogAudit) {
        for entry in checked {
            let seq = entry.seq;
            if seq != self.expected {
                found.blame(format!("entries {} to {} are missing", self.expected, seq - 1));
            }
            self.expected = seq + 1;
            found.entries += 1;
            if let Some(problem) = entry.problem {
                found.blame(format!("entry {seq}: {problem}"));
            }
            if entry.signer.is_some_and(|signer| signer != self.summary.kernel_key) {
                found.blame(format!("entry {seq}: it is signed by another kernel"));
            } else {
                seen.books.note(entry.said);
            }
            for name in entry.names {
                if !seen.names.insert(name) {
                    found.blame(format!("entry {seq}: its id or its call occurs a second time"));
                }
            }
            self.leaves.push(entry.leaf);
        }
    }

    /// Where the batch of the next checkpoint begins.
    fn batch_start(&self) -> u64 {
        self.previous.as_ref().map_or(1, |previous| previous.body.batch_end_seq + 1)
    }

    /// Checks every checkpoint whose entries have been read.
    async fn check_covered(
        &mut self,
        store: &(impl LogStore + ?Sized),
        found: &mut LogAudit,
    ) -> StoreResult<()> {
        loop {
            let number = self.chain.size() + 1;
            let page = store.checkpoints(&self.summary.log_id, number, PAGE).await?;
            let mut went_on = false;
            for checkpoint in page {
                if checkpoint.body.batch_end_seq >= self.expected {
                    return Ok(());
                }
                self.check_checkpoint(checkpoint, found);
                went_on = true;
            }
            if !went_on {
                return Ok(());
            }
        }
    }

    fn check_checkpoint(&mut self, checkpoint: KernelCheckpoint, found: &mut LogAudit) {
        let number = checkpoint.body.checkpoint_seq;
        let mut blame = |problem: String| found.blame(format!("checkpoint {number}: {problem}"));
        if let Err(error) = checkpoint.check_signature() {
            blame(error.to_string());
        }
        if checkpoint.body.kernel_key != self.summary.kernel_key {
            blame("it is signed by another kernel".to_owned());
        }
        let follows = match &self.previous {
            Some(previous) => checkpoint.check_follows(previous),
            None if number == 1 && checkpoint.body.batch_start_seq == 1 => Ok(()),
            None => Err(chio_core::signed::ArtifactError::Malformed(
                "expected the first checkpoint, over the first entries".to_owned(),
            )),
        };
        if let Err(error) = follows {
            blame(error.to_string());
        }
        if let Err(error) = checkpoint.check_chain_root(&mut self.chain) {
            blame(error.to_string());
        }
        let size = usize::try_from(checkpoint.body.tree_size).unwrap_or(usize::MAX);
        let leaves: Vec<Hash> = self.leaves.drain(..size.min(self.leaves.len())).collect();
        if chio_core::merkle::root(&leaves) != Some(checkpoint.body.merkle_root) {
            blame("its root is not that of the entries it covers".to_owned());
        }
        found.checkpoints += 1;
        self.previous = Some(checkpoint);
    }

    fn finish(self, found: &mut LogAudit) {
        found.pending = self.expected.saturating_sub(self.batch_start());
        if found.entries < self.summary.entries {
            let (has, said) = (found.entries, self.summary.entries);
            found.blame(format!("expected {said} entries, found {has}"));
        }
        if found.checkpoints < self.summary.checkpoints {
            let covered = self.summary.checkpoints - found.checkpoints;
            found.blame(format!("{covered} checkpoints cover entries that are not there"));
        }
    }
}
