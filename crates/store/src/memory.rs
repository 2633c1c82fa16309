//! A store in this process: the same promises as the others, but for durability.

mod inbox;
mod ledger;
mod once;
mod task_index;
mod tasks;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use chio_core::capability::CapabilityToken;
use chio_core::certificate::KernelCertificate;
use chio_core::checkpoint::{KernelCheckpoint, log_id};
use chio_core::crypto::PublicKey;
use chio_core::mark::StoreNumbers;
use chio_kernel::Clock;
use chio_kernel::store::{
    AuditStore, Ledger, LogEntry, LogStore, LogSummary, OpenIntent, ReceiptIndex, ReceiptQuery,
    ReceiptRow, RevocationStore, Revocations, Spent, StoreError, StoreResult, TokenStore,
};
use parking_lot::{Mutex, MutexGuard};

use crate::backend::{Backend, MakeKey};
use crate::bounds;
use crate::fields::Fields;
use crate::keys::{Lock, Role};
use inbox::Inbox;
use ledger::MemoryLedger;
use once::{ApprovalUses, Proofs};
use tasks::Tasks;

/// Everything that this process keeps.
pub(crate) struct MemoryStore {
    state: Arc<Mutex<State>>,
    store_id: String,
}

#[derive(Default)]
struct State {
    epoch: u64,
    stopped: Option<String>,
    revoked: HashMap<String, u64>,
    budgets: HashMap<String, BTreeMap<u32, Spent>>,
    debits: u64,
    intents: BTreeMap<i64, Pending>,
    last_intent: i64,
    proofs: Proofs,
    approval_uses: ApprovalUses,
    inbox: Inbox,
    tasks: Tasks,
    tokens: HashMap<String, CapabilityToken>,
    logs: Vec<Log>,
    public_keys: Vec<(Role, PublicKey)>,
    receipts: Vec<Indexed>,
}

/// An open intent of a log.
struct Pending {
    log: usize,
    open: OpenIntent,
    /// Whether something in the inbox or a task belongs to it.
    owns: bool,
}

struct Log {
    log_id: String,
    kernel_key: PublicKey,
    certificates: Vec<KernelCertificate>,
    entries: Vec<Vec<u8>>,
    checkpoints: Vec<KernelCheckpoint>,
    /// No other kernel can write it while this lives.
    lock: Weak<()>,
}

/// A receipt and what it can be found by.
struct Indexed {
    log: usize,
    seq: u64,
    /// Read at the first query for it: most receipts are never asked for.
    fields: OnceLock<Fields<'static>>,
}

impl Indexed {
    fn fields(&self, state: &State) -> &Fields<'static> {
        self.fields.get_or_init(|| {
            let body = state.logs.get(self.log).and_then(|log| log.entry(self.seq));
            Fields::read(body.map_or(&[], Vec::as_slice)).into_owned()
        })
    }
}

impl Log {
    /// Keeps an authority's certificate, in place of an earlier one.
    fn certify(&mut self, certificate: &KernelCertificate) {
        self.certificates.retain(|known| known.authority != certificate.authority);
        self.certificates.push(certificate.clone());
    }

    /// Locks it, unless it is locked.
    fn try_lock(&mut self) -> Option<Arc<()>> {
        if self.lock.strong_count() > 0 {
            return None;
        }
        let lock = Arc::new(());
        self.lock = Arc::downgrade(&lock);
        Some(lock)
    }

    fn entry(&self, seq: u64) -> Option<&Vec<u8>> {
        self.entries.get(usize::try_from(seq.checked_sub(1)?).ok()?)
    }

    /// Where the checkpoint of this number is or goes. They are kept by number.
    fn place_of(&self, checkpoint_seq: u64) -> usize {
        self.checkpoints.partition_point(|found| found.body.checkpoint_seq < checkpoint_seq)
    }
}

impl MemoryStore {
    pub(crate) fn new(clock: &dyn Clock) -> Self {
        let store_id = crate::new_store_id(clock);
        // Another store may have been here in the second that has already begun.
        let since = clock.unix_millis().div_ceil(1000);
        let (proofs, approval_uses) = (Proofs::since(since), ApprovalUses::since(since));
        let state = Arc::new(Mutex::new(State { proofs, approval_uses, ..State::default() }));
        Self { state, store_id }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// An index that this module made leads nowhere.
fn lost() -> StoreError {
    StoreError::Damaged("a log of this process is gone".to_owned())
}

impl State {
    fn public_key(&self, role: Role) -> Option<PublicKey> {
        let known = self.public_keys.iter().find(|(of, _)| *of == role);
        known.map(|(_, key)| key.clone())
    }

    /// The log of this kernel; a new one when it is not known.
    fn log_of(&mut self, kernel_key: &PublicKey) -> usize {
        let log_id = log_id(kernel_key);
        if let Some(place) = self.logs.iter().position(|log| log.log_id == log_id) {
            return place;
        }
        self.logs.push(Log {
            log_id,
            kernel_key: kernel_key.clone(),
            certificates: Vec::new(),
            entries: Vec::new(),
            checkpoints: Vec::new(),
            lock: Weak::new(),
        });
        self.logs.len() - 1
    }

    fn log(&self, log_id: &str) -> Option<&Log> {
        self.logs.iter().find(|log| log.log_id == log_id)
    }

    fn row(&self, place: usize) -> Option<ReceiptRow> {
        let found = self.receipts.get(place)?;
        let log = self.logs.get(found.log)?;
        let body = log.entry(found.seq)?.clone();
        let cursor = u64::try_from(place).ok()?.checked_add(1)?;
        Some(ReceiptRow { cursor, log_id: log.log_id.clone(), seq: found.seq, body })
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[async_trait]
impl Backend for MemoryStore {
    async fn public_key(&self, role: Role) -> StoreResult<Option<PublicKey>> {
        Ok(self.state().public_key(role))
    }

    async fn remember_key(&self, role: Role, make: MakeKey) -> StoreResult<()> {
        let mut state = self.state();
        if state.public_key(role).is_none() {
            state.public_keys.push((role, make()?));
        }
        Ok(())
    }

    async fn try_lock_log(&self, kernel_key: &PublicKey) -> StoreResult<Option<Lock>> {
        let mut state = self.state();
        let log = state.log_of(kernel_key);
        let lock = state.logs.get_mut(log).ok_or_else(lost)?.try_lock();
        Ok(lock.map(|lock| Box::new(lock) as Lock))
    }

    async fn ledger(
        self: Arc<Self>,
        kernel_key: &PublicKey,
        locks: [Lock; 2],
    ) -> StoreResult<Arc<dyn Ledger>> {
        let log = self.state().log_of(kernel_key);
        Ok(Arc::new(MemoryLedger::new(Arc::clone(&self.state), log, locks)))
    }
}

#[async_trait]
impl RevocationStore for MemoryStore {
    async fn epoch(&self) -> StoreResult<u64> {
        Ok(self.state().epoch)
    }

    async fn revoked_since(&self, epoch: u64) -> StoreResult<Revocations> {
        let state = self.state();
        let later = state.revoked.iter().filter(|(_, at)| **at > epoch);
        let mut ids: Vec<(u64, String)> = later.map(|(id, at)| (*at, id.clone())).collect();
        ids.sort();
        let ids = ids.into_iter().map(|(_, id)| id).collect();
        Ok(Revocations { epoch: state.epoch, ids, stopped: state.stopped.clone() })
    }

    async fn revoke(&self, capability_id: &str, _at: u64) -> StoreResult<bool> {
        let mut state = self.state();
        if state.revoked.contains_key(capability_id) {
            return Ok(false);
        }
        state.epoch += 1;
        let epoch = state.epoch;
        state.revoked.insert(capability_id.to_owned(), epoch);
        Ok(true)
    }

    async fn stop(&self, reason: Option<String>) -> StoreResult<()> {
        let mut state = self.state();
        if state.stopped != reason {
            state.epoch += 1;
            state.stopped = reason;
        }
        Ok(())
    }
}

#[async_trait]
impl TokenStore for MemoryStore {
    async fn remember(&self, token: &CapabilityToken) -> StoreResult<bool> {
        let mut state = self.state();
        let known = state.tokens.entry(token.id.clone()).or_insert_with(|| token.clone());
        Ok(known == token)
    }

    async fn tokens(&self, ids: &[String]) -> StoreResult<Vec<CapabilityToken>> {
        let state = self.state();
        Ok(ids.iter().filter_map(|id| state.tokens.get(id)).cloned().collect())
    }

    async fn held_by(
        &self,
        subject: &PublicKey,
        now: u64,
        limit: usize,
    ) -> StoreResult<Vec<CapabilityToken>> {
        let state = self.state();
        let held = |token: &&CapabilityToken| {
            token.subject == *subject && token.issued_at <= now && now < token.expires_at
        };
        let mut held: Vec<&CapabilityToken> = state.tokens.values().filter(held).collect();
        held.sort_by(|a, b| (b.issued_at, &b.id).cmp(&(a.issued_at, &a.id)));
        Ok(held.into_iter().take(bounds::rows(limit)).cloned().collect())
    }

    async fn known_after(&self, id: &str, limit: usize) -> StoreResult<Vec<CapabilityToken>> {
        let state = self.state();
        let later = state.tokens.values().filter(|token| token.id.as_str() > id);
        let mut later: Vec<&CapabilityToken> = later.collect();
        later.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(later.into_iter().take(bounds::rows(limit)).cloned().collect())
    }
}

#[async_trait]
impl LogStore for MemoryStore {
    async fn store_id(&self) -> StoreResult<String> {
        Ok(self.store_id.clone())
    }

    async fn logs(&self) -> StoreResult<Vec<LogSummary>> {
        let state = self.state();
        let summary = |(place, log): (usize, &Log)| LogSummary {
            log_id: log.log_id.clone(),
            kernel_key: log.kernel_key.clone(),
            certificates: log.certificates.clone(),
            entries: count(log.entries.len()),
            checkpoints: count(log.checkpoints.len()),
            open_intents: count(state.intents.values().filter(|open| open.log == place).count()),
        };
        Ok(state.logs.iter().enumerate().map(summary).collect())
    }

    async fn entries(&self, log_id: &str, from: u64, limit: usize) -> StoreResult<Vec<LogEntry>> {
        let state = self.state();
        let Some(log) = state.log(log_id) else { return Ok(Vec::new()) };
        let entries = (1_u64..).zip(&log.entries).skip_while(|(seq, _)| *seq < from);
        let entry = |(seq, body): (u64, &Vec<u8>)| LogEntry { seq, body: body.clone() };
        Ok(entries.take(bounds::rows(limit)).map(entry).collect())
    }

    async fn checkpoints(
        &self,
        log_id: &str,
        from: u64,
        limit: usize,
    ) -> StoreResult<Vec<KernelCheckpoint>> {
        let state = self.state();
        let Some(log) = state.log(log_id) else { return Ok(Vec::new()) };
        let later = log.checkpoints.iter().skip(log.place_of(from));
        Ok(later.take(bounds::rows(limit)).cloned().collect())
    }

    async fn covering(&self, log_id: &str, seq: u64) -> StoreResult<Option<KernelCheckpoint>> {
        let state = self.state();
        let Some(log) = state.log(log_id) else { return Ok(None) };
        let covers = |found: &&KernelCheckpoint| {
            (found.body.batch_start_seq..=found.body.batch_end_seq).contains(&seq)
        };
        Ok(log.checkpoints.iter().find(covers).cloned())
    }

    async fn admit(&self, certificate: &KernelCertificate) -> StoreResult<()> {
        crate::check_certificate(certificate)?;
        let mut state = self.state();
        let place = state.log_of(&certificate.kernel_key);
        state.logs.get_mut(place).ok_or_else(lost)?.certify(certificate);
        Ok(())
    }
}

#[async_trait]
impl AuditStore for MemoryStore {
    async fn numbers(&self) -> StoreResult<StoreNumbers> {
        let state = self.state();
        let (debits, epoch, revoked) = (state.debits, state.epoch, count(state.revoked.len()));
        Ok(StoreNumbers { debits, epoch, revoked })
    }

    async fn spent(&self, capability_id: &str, grant_index: u32) -> StoreResult<Spent> {
        Ok(self.state().spent(capability_id, grant_index))
    }
}

#[async_trait]
impl ReceiptIndex for MemoryStore {
    async fn query(&self, query: &ReceiptQuery) -> StoreResult<Vec<ReceiptRow>> {
        let state = self.state();
        let places = 0..state.receipts.len();
        let places: Box<dyn Iterator<Item = usize> + Send> =
            if query.newest_first { Box::new(places.rev()) } else { Box::new(places) };
        let fits = |place: &usize| {
            let cursor = count(*place) + 1;
            let beyond = query
                .cursor
                .is_none_or(|from| if query.newest_first { cursor < from } else { cursor > from });
            beyond
                && state
                    .receipts
                    .get(*place)
                    .is_some_and(|found| found.fields(&state).answer(query))
        };
        let rows = places.filter(fits).take(bounds::rows(query.limit));
        rows.map(|place| state.row(place).ok_or_else(lost)).collect()
    }

    async fn find(&self, receipt_id: &str) -> StoreResult<Option<ReceiptRow>> {
        let state = self.state();
        let is_it = |found: &Indexed| found.fields(&state).id.as_deref() == Some(receipt_id);
        Ok(state.receipts.iter().position(is_it).and_then(|place| state.row(place)))
    }

    async fn find_beginning(&self, digits: &str, limit: usize) -> StoreResult<Vec<ReceiptRow>> {
        let state = self.state();
        let is_one = |place: &usize| {
            let found = state.receipts.get(*place).map(|found| found.fields(&state));
            found.and_then(|fields| fields.id.as_deref()).is_some_and(|id| id.starts_with(digits))
        };
        let places = (0..state.receipts.len()).filter(is_one).take(bounds::rows(limit));
        Ok(places.filter_map(|place| state.row(place)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chio_kernel::Clock;
    use chio_kernel::store::{ApprovalUse, ProofUse, UseRefused};

    use super::MemoryStore;

    #[derive(Debug)]
    struct At(u64);

    impl Clock for At {
        fn unix_millis(&self) -> u64 {
            self.0
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    /// Whether a store that begins at this moment takes what was made in this second.
    fn check(begin_millis: u64, issued_at: u64, takes: bool) {
        let store = MemoryStore::new(&At(begin_millis));
        let (key, expires_at, now) = ("a".to_owned(), 1000, issued_at);
        let proof = ProofUse { key: key.clone(), issued_at, expires_at, now };
        let (digest, request_id, intent_hash) = (key.clone(), key.clone(), key);
        let approval = ApprovalUse { digest, request_id, intent_hash, issued_at, expires_at, now };
        let state = store.state();
        let refused = |why| (!takes).then_some(why);
        let case = format!("{issued_at} at {begin_millis}");
        assert_eq!(state.proofs.refuse(&[proof]), refused(UseRefused::ProofTooOld), "{case}");
        let found = state.approval_uses.refuse(&approval);
        assert_eq!(found, refused(UseRefused::ApprovalTooOld), "{case}");
    }

    #[test]
    fn nothing_is_taken_from_a_second_that_another_store_may_have_seen() {
        check(7000, 6, false);
        check(7000, 7, true);
        check(7001, 7, false);
        check(7999, 7, false);
        check(7999, 8, true);
    }
}
