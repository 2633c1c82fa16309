//! Marks: what a store must still have, because a kernel signed that it had it.

use std::fmt;

use chio_core::checkpoint::log_id;
use chio_core::crypto::PublicKey;
use chio_core::mark::{Mark, MarkedCheckpoint, StoreNumbers};

use crate::store::{AuditStore, LogStore, LogSummary, StoreError, StoreResult};

/// Something that a store had when a mark was signed and has no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regression {
    /// The log that it is about; none for the whole store.
    pub log_id: Option<String>,
    /// What was expected, and what was found.
    pub problem: String,
}

impl fmt::Display for Regression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(log_id) = &self.log_id {
            write!(f, "{log_id}: ")?;
        }
        f.write_str(&self.problem)
    }
}

/// The marks of a data directory.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    /// Those that their kernels signed.
    pub sound: Vec<Mark>,
    /// Those that cannot be read or are not their kernels': what they said is not known, so the
    /// store may be behind it.
    pub unreadable: Vec<Regression>,
}

impl Marks {
    /// What there is of this kernel's mark.
    #[must_use]
    pub fn of(mut self, kernel_key: &PublicKey) -> Self {
        let own = Some(log_id(kernel_key));
        self.sound.retain(|mark| mark.kernel_key == *kernel_key);
        self.unreadable.retain(|unread| unread.log_id == own);
        self
    }
}

/// What a store has no more of what these marks say. They were read before this is called, so that
/// a store in use is only ever ahead of them.
///
/// # Errors
/// When the store does not answer.
pub async fn regressions(
    store: &(impl LogStore + AuditStore + ?Sized),
    marks: &Marks,
) -> StoreResult<Vec<Regression>> {
    let Marks { sound: marks, unreadable } = marks;
    let mut found = unreadable.clone();
    if marks.is_empty() {
        return Ok(found);
    }
    let store_id = store.store_id().await?;
    let (numbers, logs) = (store.numbers().await?, store.logs().await?);
    for problem in fallen(&marks.iter().collect::<Vec<_>>(), numbers) {
        found.push(Regression { log_id: None, problem });
    }
    for mark in marks {
        let log_id = log_id(&mark.kernel_key);
        let problem = if mark.store_id == store_id {
            let log = logs.iter().find(|log| log.log_id == log_id);
            problem_of_log(store, mark.checkpoint.as_ref(), log).await?
        } else {
            Some(format!("expected the store `{}`, found `{store_id}`", mark.store_id))
        };
        found.extend(problem.map(|problem| Regression { log_id: Some(log_id), problem }));
    }
    Ok(found)
}

/// What a store has no more of what the kernel that uses it has signed, or signed last.
pub(crate) async fn decreases(
    store: &(impl LogStore + ?Sized),
    before: Option<&Mark>,
    next: &Mark,
) -> StoreResult<Vec<String>> {
    let mut found: Vec<_> = fallen(before.as_slice(), next.store).collect();
    if let Some(before) = before.filter(|before| before.store_id != next.store_id) {
        let (expected, now) = (&before.store_id, &next.store_id);
        found.push(format!("expected the store `{expected}`, found `{now}`"));
    }
    let before = before.and_then(|before| before.checkpoint.as_ref());
    for marked in before.into_iter().chain(&next.checkpoint) {
        let (id, seq) = (log_id(&next.kernel_key), marked.checkpoint_seq);
        let last = store.checkpoints(&id, seq, 1).await?.pop();
        let last = last.filter(|last| last.body.checkpoint_seq == seq);
        let digest = last.map(|last| last.body.digest()).transpose();
        if digest.map_err(|error| StoreError::Damaged(error.to_string()))?.as_ref()
            != Some(&marked.sha256)
        {
            let expected = format!("expected checkpoint {seq} over {} receipts", marked.entries);
            found.push(format!("{expected} with the hash {}, found none such", marked.sha256));
        }
    }
    Ok(found)
}

/// Which numbers are lower than in any of the marks.
fn fallen(marks: &[&Mark], found: StoreNumbers) -> impl Iterator<Item = String> {
    type Number = fn(&StoreNumbers) -> u64;
    let numbers: [(&str, Number); 3] = [
        ("debits of budgets", |numbers| numbers.debits),
        ("as epoch of revocations", |numbers| numbers.epoch),
        ("revoked tokens", |numbers| numbers.revoked),
    ];
    let most = |number: Number| marks.iter().map(|mark| number(&mark.store)).max().unwrap_or(0);
    let numbers = numbers.map(|(what, number)| (what, most(number), number(&found)));
    let fallen = numbers.into_iter().filter(|(_, least, found)| found < least);
    fallen.map(|(what, least, found)| format!("expected at least {least} {what}, found {found}"))
}

/// Whether a log is there, with the checkpoint that a mark names.
async fn problem_of_log(
    store: &(impl LogStore + ?Sized),
    marked: Option<&MarkedCheckpoint>,
    log: Option<&LogSummary>,
) -> StoreResult<Option<String>> {
    let Some(log) = log else {
        return Ok(Some("expected the kernel's log in the store, found none".to_owned()));
    };
    let Some(marked) = marked else { return Ok(None) };
    let seq = marked.checkpoint_seq;
    let expected = format!("expected checkpoint {seq} over {} receipts", marked.entries);
    let found = store.checkpoints(&log.log_id, seq, 1).await?.pop();
    let Some(found) = found.filter(|found| found.body.checkpoint_seq == seq) else {
        let (checkpoints, entries) = (log.checkpoints, log.entries);
        return Ok(Some(format!(
            "{expected}, found {checkpoints} checkpoints, and {entries} receipts"
        )));
    };
    let digest = found.body.digest();
    if digest.map_err(|error| StoreError::Damaged(error.to_string()))? != marked.sha256 {
        return Ok(Some(format!("{expected} with the hash {}, found another", marked.sha256)));
    }
    let entries = log.entries;
    Ok((entries < marked.entries).then(|| format!("{expected}, found {entries} receipts")))
}
