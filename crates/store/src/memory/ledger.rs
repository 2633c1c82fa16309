//! The log of one kernel in a memory store.

use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use chio_core::checkpoint::{KernelCheckpoint, log_id};
use chio_kernel::store::{
    Abandoned, Appended, Closing, Entry, IntentId, Ledger, OpenIntent, Refund, Reservation,
    Reserved, StoreResult,
};

use super::{Indexed, State, lock, lost};
use crate::budget::{Choice, Debit, Spent, choose};

/// Keeps others from a slot as long as it lives.
pub(super) struct SlotGuard {
    state: Arc<Mutex<State>>,
    slot: usize,
}

impl SlotGuard {
    /// Guards a slot that the caller has marked as locked.
    pub(super) const fn new(state: Arc<Mutex<State>>, slot: usize) -> Self {
        Self { state, slot }
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        if let Some(slot) = lock(&self.state).slots.get_mut(self.slot) {
            slot.locked = false;
        }
    }
}

pub(super) struct MemoryLedger {
    guard: SlotGuard,
    log: usize,
}

impl MemoryLedger {
    pub(super) const fn new(guard: SlotGuard, log: usize) -> Self {
        Self { guard, log }
    }
}

impl State {
    fn spent(&self, capability_id: &str, grant_index: u32) -> Spent {
        let grants = self.budgets.get(capability_id);
        grants.and_then(|grants| grants.get(&grant_index)).copied().unwrap_or_default()
    }

    fn debit(&mut self, debit: &Debit<'_>) {
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
    fn close(&mut self, closing: &Closing) -> bool {
        if self.intents.remove(&closing.intent.0).is_none() {
            return false;
        }
        closing.refunds.iter().for_each(|refund| self.give_back(refund));
        true
    }

    fn open_intents(&self, log: usize) -> Vec<OpenIntent> {
        let ours = self.intents.values().filter(|(of, _)| *of == log);
        ours.map(|(_, intent)| intent.clone()).collect()
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn reserve(&self, reservation: Reservation) -> StoreResult<Reserved> {
        let mut state = lock(&self.guard.state);
        if let Some(reason) = &state.stopped {
            return Ok(Reserved::Stopped(reason.clone()));
        }
        if let Some(id) = reservation.authority.iter().find(|id| state.revoked.contains_key(*id)) {
            return Ok(Reserved::Revoked(id.clone()));
        }
        let choice = choose(&reservation.alternatives, |id, index| Ok(state.spent(id, index)))?;
        let (alternative, debits) = match choice {
            Choice::Take(alternative, debits) => (alternative, debits),
            Choice::Exhausted(missing) => return Ok(missing.answer()),
            Choice::Nothing => return Err(crate::no_alternative()),
        };
        debits.iter().for_each(|debit| state.debit(debit));
        state.last_intent += 1;
        let id = IntentId(state.last_intent);
        let open = OpenIntent { id, reservation, alternative };
        state.intents.insert(id.0, (self.log, open));
        Ok(Reserved::Held { intent: id, alternative })
    }

    async fn append(&self, entry: Entry) -> StoreResult<Appended> {
        let mut state = lock(&self.guard.state);
        if entry.closes.as_ref().is_some_and(|closing| !state.close(closing)) {
            return Ok(Appended::IntentClosed);
        }
        let log = state.logs.get_mut(self.log).ok_or_else(lost)?;
        log.entries.push(entry.body);
        let seq = super::count(log.entries.len());
        state.receipts.push(Indexed { log: self.log, seq, fields: OnceLock::new() });
        Ok(Appended::At(seq))
    }

    async fn checkpoint(&self, checkpoint: KernelCheckpoint) -> StoreResult<()> {
        let mut state = lock(&self.guard.state);
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

    async fn open_intents(&self) -> StoreResult<Vec<OpenIntent>> {
        Ok(lock(&self.guard.state).open_intents(self.log))
    }

    async fn abandoned(&self) -> StoreResult<Vec<Abandoned>> {
        let mut state = lock(&self.guard.state);
        let free: Vec<(usize, usize)> = (state.slots.iter().enumerate())
            .filter(|(_, slot)| !slot.locked)
            .map(|(place, slot)| (place, slot.log))
            .collect();
        let mut abandoned = Vec::new();
        for (place, log) in free {
            let intents = state.open_intents(log);
            let (false, Some(found)) = (intents.is_empty(), state.logs.get(log)) else { continue };
            let log_id = found.log_id.clone();
            let Some(slot) = state.slots.get_mut(place) else { continue };
            slot.locked = true;
            let lock = Box::new(SlotGuard::new(Arc::clone(&self.guard.state), place));
            abandoned.push(Abandoned { log_id, intents, lock });
        }
        Ok(abandoned)
    }
}
