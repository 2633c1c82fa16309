//! The log of one kernel in a memory store.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use chio_core::checkpoint::{KernelCheckpoint, log_id};
use chio_core::mark::Mark;
use chio_kernel::store::{
    Abandoned, Appended, Closing, Entry, IntentId, Ledger, OpenIntent, Opened, Opening, Refund,
    Reservation, Reserved, Spent, StoreResult, Uncovered, UseRefused,
};
use parking_lot::Mutex;

use super::{Indexed, Pending, State, lost};
use crate::budget::{Choice, Debit, choose};
use crate::keys::Lock;

pub(super) struct MemoryLedger {
    state: Arc<Mutex<State>>,
    log: usize,
    /// No other kernel can write the log while these are held.
    _locks: [Lock; 2],
}

impl MemoryLedger {
    pub(super) const fn new(state: Arc<Mutex<State>>, log: usize, locks: [Lock; 2]) -> Self {
        Self { state, log, _locks: locks }
    }
}

impl State {
    pub(super) fn spent(&self, capability_id: &str, grant_index: u32) -> Spent {
        let grants = self.budgets.get(capability_id);
        grants.and_then(|grants| grants.get(&grant_index)).copied().unwrap_or_default()
    }

    fn debit(&mut self, debit: &Debit<'_>) {
        self.debits += 1;
        let grants = self.budgets.entry(debit.capability_id.to_owned()).or_default();
        let spent = grants.entry(debit.grant_index).or_default();
        spent.invocations = spent.invocations.saturating_add(debit.invocations);
        spent.units = spent.units.saturating_add(debit.units);
    }

    fn give_back(&mut self, refund: &Refund) {
        let grants = self.budgets.get_mut(&refund.capability_id);
        if let Some(spent) = grants.and_then(|grants| grants.get_mut(&refund.grant_index)) {
            spent.invocations = spent.invocations.saturating_sub(refund.invocations.into());
            spent.units = spent.units.saturating_sub(refund.units);
        }
    }

    /// Closes an intent and settles; false when it is not open.
    fn close(&mut self, closing: &Closing, receipt: &[u8]) -> bool {
        let Some(closed) = self.intents.remove(&closing.intent.0) else { return false };
        if closed.owns {
            self.inbox.close(closing);
            self.tasks.close(closing, receipt);
        }
        closing.refunds.iter().for_each(|refund| self.give_back(refund));
        true
    }

    fn open_intents(&self, log: usize) -> Vec<OpenIntent> {
        let ours = self.intents.values().filter(|pending| pending.log == log);
        ours.map(|pending| pending.open.clone()).collect()
    }

    /// Whether this is an intent of this log that has not reserved.
    fn waits(&self, log: usize, intent: IntentId) -> bool {
        let found = self.intents.get(&intent.0);
        found.is_some_and(|pending| pending.log == log && !pending.open.reserved)
    }

    /// Why a proof or an approval cannot be used, if so.
    fn refuse(&self, reservation: &Reservation) -> Option<UseRefused> {
        if let Some(refused) = self.proofs.refuse(&reservation.proofs) {
            return Some(refused);
        }
        let approval = reservation.approval.as_ref();
        if let Some(refused) = approval.and_then(|brought| self.approval_uses.refuse(brought)) {
            return Some(refused);
        }
        let waited = reservation.resumes;
        let may = waited.is_none_or(|it| self.inbox.lets_go_on(it.0, approval.is_some()));
        (!may).then_some(UseRefused::ApprovalUsed)
    }

    /// Keeps an intent: one that goes on, or a new one.
    fn put(&mut self, resumes: Option<IntentId>, kept: Kept) -> IntentId {
        let id = resumes.unwrap_or_else(|| {
            self.last_intent += 1;
            IntentId(self.last_intent)
        });
        let owned = self.intents.get(&id.0).is_some_and(|before| before.owns);
        let Kept { log, reservation, alternative, reserved, owns } = kept;
        let open = OpenIntent { id, reservation, alternative, reserved };
        self.intents.insert(id.0, Pending { log, open, owns: owns || owned });
        id
    }
}

/// What is kept of an intent.
struct Kept {
    log: usize,
    reservation: Reservation,
    alternative: usize,
    reserved: bool,
    owns: bool,
}

impl MemoryLedger {
    /// Why a call cannot wait, if so.
    fn refuse(&self, state: &State, opening: &Opening, size: u64) -> StoreResult<Option<Opened>> {
        if opening.resumes.is_some_and(|intent| !state.waits(self.log, intent)) {
            return Ok(Some(Opened::IntentClosed));
        }
        if let Some(refused) = state.proofs.refuse(&opening.proofs) {
            return Ok(Some(Opened::Refused(refused)));
        }
        let looked = opening.claims.as_ref().map_or(Ok(()), |claim| state.tasks.look_at(claim));
        if let Err(refused) = looked {
            return Ok(Some(Opened::NotClaimed(refused)));
        }
        let Some(request) = &opening.waits_for else { return Ok(None) };
        if state.inbox.has(&request.id) {
            return Err(crate::inbox::name_taken());
        }
        let load = state.inbox.load(&request.subject, opening.resumes.map(|intent| intent.0));
        Ok(load.is_full_for(size).then_some(Opened::InboxFull))
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn open(&self, opening: Opening) -> StoreResult<Opened> {
        let body = opening.waits_for.as_ref().map(crate::inbox::body).transpose()?;
        let size = body.map_or(0, |body| super::count(body.len()));
        let mut state = self.state.lock();
        if let Some(refused) = self.refuse(&state, &opening, size)? {
            return Ok(refused);
        }
        let Opening { intent, resumes, proofs, waits_for, claims } = opening;
        let owns = waits_for.is_some() || claims.is_some();
        let reservation = crate::unreserved(intent);
        let kept = Kept { log: self.log, reservation, alternative: 0, reserved: false, owns };
        let id = state.put(resumes, kept);
        state.proofs.take(proofs);
        if let Some(claim) = claims {
            state.tasks.claim(id.0, &claim);
        }
        if let Some(request) = waits_for {
            state.inbox.add(id.0, request, size);
        }
        Ok(Opened::At(id))
    }

    async fn reserve(&self, mut reservation: Reservation) -> StoreResult<Reserved> {
        let mut state = self.state.lock();
        if let Some(reason) = &state.stopped {
            return Ok(Reserved::Stopped(reason.clone()));
        }
        if let Some(id) = reservation.authority.iter().find(|id| state.revoked.contains_key(*id)) {
            return Ok(Reserved::Revoked(id.clone()));
        }
        let resumes = reservation.resumes;
        if resumes.is_some_and(|intent| !state.waits(self.log, intent)) {
            return Ok(Reserved::IntentClosed);
        }
        if let Some(refused) = state.refuse(&reservation) {
            return Ok(Reserved::Refused(refused));
        }
        let choice = choose(&reservation.alternatives, |id, index| Ok(state.spent(id, index)))?;
        let (alternative, debits) = match choice {
            Choice::Take(alternative, debits) => (alternative, debits),
            Choice::Exhausted(missing) => return Ok(missing.answer()),
            Choice::Nothing => return Err(crate::no_alternative()),
        };
        debits.iter().for_each(|debit| state.debit(debit));
        state.proofs.take(std::mem::take(&mut reservation.proofs));
        if let Some(approval) = reservation.approval.take() {
            state.approval_uses.take(approval);
            resumes.inspect(|intent| state.inbox.take(intent.0));
        }
        reservation.resumes = None;
        let (log, task) = (self.log, reservation.task.take());
        let owns = task.is_some();
        let intent =
            state.put(resumes, Kept { log, reservation, alternative, reserved: true, owns });
        if let Some(task) = task {
            state.tasks.begin(intent.0, &task);
        }
        Ok(Reserved::Held { intent, alternative })
    }

    async fn append(&self, entry: Entry) -> StoreResult<Appended> {
        let mut state = self.state.lock();
        let closes = entry.closes.as_ref();
        if closes.is_some_and(|closing| !state.close(closing, &entry.body)) {
            return Ok(Appended::IntentClosed);
        }
        if let Some(task) = &entry.task {
            state.tasks.keep(task, &entry.body);
        }
        let log = state.logs.get_mut(self.log).ok_or_else(lost)?;
        log.entries.push(entry.body);
        let seq = super::count(log.entries.len());
        state.receipts.push(Indexed { log: self.log, seq, fields: OnceLock::new() });
        Ok(Appended::At(seq))
    }

    async fn checkpoint(&self, checkpoint: KernelCheckpoint) -> StoreResult<()> {
        let mut state = self.state.lock();
        let log = state.logs.get_mut(self.log).ok_or_else(lost)?;
        if log.log_id != log_id(&checkpoint.body.kernel_key) {
            return Err(crate::foreign_checkpoint());
        }
        let seq = checkpoint.body.checkpoint_seq;
        let place = log.place_of(seq);
        match log.checkpoints.get(place) {
            Some(found) if *found == checkpoint => {}
            Some(found) if found.body.checkpoint_seq == seq => {
                return Err(crate::other_checkpoint(seq));
            }
            _ => log.checkpoints.insert(place, checkpoint),
        }
        Ok(())
    }

    async fn keep_mark(&self, _mark: Mark) -> StoreResult<bool> {
        // What ends with its process cannot be put back.
        Ok(false)
    }

    async fn check_present(&self) -> StoreResult<()> {
        Ok(())
    }

    async fn open_intents(&self) -> StoreResult<Vec<OpenIntent>> {
        Ok(self.state.lock().open_intents(self.log))
    }

    async fn abandoned(&self) -> StoreResult<Vec<Abandoned>> {
        let mut state = self.state.lock();
        let mut abandoned = Vec::new();
        for log in 0..state.logs.len() {
            let intents = state.open_intents(log);
            let (false, Some(found)) = (intents.is_empty(), state.logs.get_mut(log)) else {
                continue;
            };
            let Some(lock) = found.try_lock() else { continue };
            abandoned.push(Abandoned {
                log_id: found.log_id.clone(),
                intents,
                lock: Box::new(lock),
            });
        }
        Ok(abandoned)
    }

    async fn uncovered(&self) -> StoreResult<Vec<Uncovered>> {
        // They end together with the process, and nothing is left to be covered.
        Ok(Vec::new())
    }
}
