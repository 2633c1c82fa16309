//! The tasks of this process, in memory and within bounds: those that run, and those that ended a
//! while ago.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chio_core::crypto::PublicKey;
use tokio_util::sync::CancellationToken;

use crate::limits::A2aLimits;
use crate::record::TaskRecord;

/// One owner has no more than one in so many of the bytes.
const SHARE: usize = 4;

/// A task in the book.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) owner: PublicKey,
    pub(crate) record: Arc<TaskRecord>,
    /// Whether the store has it too; then the store says how far it has come.
    pub(crate) durable: bool,
    /// Cancelled when its owner calls it off.
    pub(crate) cancellation: CancellationToken,
    /// Cancelled when it has ended, or rests.
    pub(crate) ended: CancellationToken,
}

impl Entry {
    /// Whether something of this process works on it.
    fn runs(&self) -> bool {
        !self.ended.is_cancelled()
    }
}

/// Why a task is not taken into the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// Something works on it already.
    Runs,
    /// Nothing can make room for it.
    Full,
}

/// The book.
#[derive(Debug)]
pub(crate) struct Book {
    pages: Mutex<Pages>,
    limits: A2aLimits,
}

#[derive(Debug, Default)]
struct Pages {
    entries: HashMap<String, Kept>,
    /// In the order in which they came.
    order: BTreeMap<u64, String>,
    owned: HashMap<PublicKey, Owned>,
    bytes: usize,
    next: u64,
}

/// What one owner has.
#[derive(Debug, Default)]
struct Owned {
    places: BTreeSet<u64>,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    entry: Entry,
    place: u64,
    bytes: usize,
    /// The first second in which it is gone.
    expires_at: u64,
}

impl Pages {
    fn remove(&mut self, place: u64) {
        let Some(id) = self.order.remove(&place) else { return };
        let Some(kept) = self.entries.remove(&id) else { return };
        self.bytes = self.bytes.saturating_sub(kept.bytes);
        if let Some(owned) = self.owned.get_mut(&kept.entry.owner) {
            owned.places.remove(&place);
            owned.bytes = owned.bytes.saturating_sub(kept.bytes);
            if owned.places.is_empty() {
                self.owned.remove(&kept.entry.owner);
            }
        }
    }

    fn is_idle(&self, place: u64) -> bool {
        let entry = self.order.get(&place).and_then(|id| self.entries.get(id));
        entry.is_none_or(|kept| !kept.entry.runs())
    }

    /// Forgets what has expired. The oldest come first.
    fn sweep(&mut self, now: u64) {
        let places = self.order.iter().map_while(|(place, id)| {
            let kept = self.entries.get(id)?;
            // Whatever runs stays, however old it is.
            (kept.expires_at <= now || kept.entry.runs()).then_some((*place, kept.entry.runs()))
        });
        let over: Vec<u64> = places.filter(|(_, runs)| !runs).map(|(place, _)| place).collect();
        over.into_iter().for_each(|place| self.remove(place));
    }

    /// Forgets the oldest of an owner that does not run. Tells whether there was one.
    fn forget_oldest_of(&mut self, owner: &PublicKey) -> bool {
        let places = self.owned.get(owner).into_iter().flat_map(|owned| &owned.places);
        let oldest = places.copied().find(|place| self.is_idle(*place));
        oldest.map(|place| self.remove(place)).is_some()
    }

    /// Keeps to the bounds of bytes: an owner's own tasks make room before anybody else's.
    fn make_room(&mut self, owner: &PublicKey, limits: &A2aLimits) {
        let share = limits.book_bytes / SHARE;
        let above = |pages: &Self| pages.owned.get(owner).is_some_and(|it| it.bytes > share);
        while above(self) && self.forget_oldest_of(owner) {}
        while self.bytes > limits.book_bytes && self.forget_oldest() {}
    }

    /// Forgets the oldest that does not run. Tells whether there was one.
    fn forget_oldest(&mut self) -> bool {
        let oldest = self.order.keys().copied().find(|place| self.is_idle(*place));
        oldest.map(|place| self.remove(place)).is_some()
    }
}

impl Book {
    pub(crate) fn new(limits: A2aLimits) -> Self {
        Self { pages: Mutex::default(), limits }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a task in; older ones make room. One that is there already must be `before`, which it
    /// goes on with, or one that the store has.
    pub(crate) fn insert(
        &self,
        entry: Entry,
        before: Option<&Arc<TaskRecord>>,
        now: u64,
    ) -> Result<(), NotTaken> {
        let mut pages = self.pages();
        pages.sweep(now);
        let id = entry.record.id.clone();
        if let Some(known) = pages.entries.get(&id) {
            let expected = before.is_some_and(|before| Arc::ptr_eq(before, &known.entry.record));
            if known.entry.runs() || !(expected || known.entry.durable) {
                return Err(NotTaken::Runs);
            }
            let place = known.place;
            pages.remove(place);
        }
        let owned = pages.owned.get(&entry.owner).map_or(0, |owned| owned.places.len());
        if owned >= self.limits.tasks_per_owner && !pages.forget_oldest_of(&entry.owner) {
            return Err(NotTaken::Full);
        }
        if pages.entries.len() >= self.limits.book_tasks && !pages.forget_oldest() {
            return Err(NotTaken::Full);
        }
        let (place, bytes) = (pages.next, entry.record.size());
        let lifetime = self.limits.task_lifetime.as_secs();
        let expires_at = now.saturating_add(lifetime);
        pages.next += 1;
        pages.order.insert(place, id.clone());
        let owner = entry.owner.clone();
        let owned = pages.owned.entry(owner.clone()).or_default();
        owned.places.insert(place);
        owned.bytes = owned.bytes.saturating_add(bytes);
        pages.bytes = pages.bytes.saturating_add(bytes);
        pages.entries.insert(id, Kept { entry, place, bytes, expires_at });
        pages.make_room(&owner, &self.limits);
        Ok(())
    }

    /// A task that has come further. What is too large to be kept is forgotten, the oldest first.
    pub(crate) fn update(&self, record: Arc<TaskRecord>) {
        let mut pages = self.pages();
        let bytes = record.size();
        let Some(kept) = pages.entries.get_mut(&record.id) else { return };
        let before = std::mem::replace(&mut kept.bytes, bytes);
        // It is kept for a while from when it has ended.
        let until = record.updated_at.saturating_add(self.limits.task_lifetime.as_secs());
        kept.expires_at = kept.expires_at.max(until);
        let owner = kept.entry.owner.clone();
        kept.entry.record = record;
        pages.bytes = pages.bytes.saturating_sub(before).saturating_add(bytes);
        if let Some(owned) = pages.owned.get_mut(&owner) {
            owned.bytes = owned.bytes.saturating_sub(before).saturating_add(bytes);
        }
        pages.make_room(&owner, &self.limits);
    }

    /// A task of this owner.
    pub(crate) fn find(&self, id: &str, owner: &PublicKey, now: u64) -> Option<Entry> {
        let mut pages = self.pages();
        pages.sweep(now);
        let kept = pages.entries.get(id)?;
        (kept.entry.owner == *owner).then(|| kept.entry.clone())
    }

    /// Forgets a task.
    pub(crate) fn forget(&self, id: &str) {
        let mut pages = self.pages();
        if let Some(place) = pages.entries.get(id).map(|kept| kept.place) {
            pages.remove(place);
        }
    }

    /// The tasks of this owner.
    pub(crate) fn of(&self, owner: &PublicKey, now: u64) -> Vec<Entry> {
        let mut pages = self.pages();
        pages.sweep(now);
        let places = pages.owned.get(owner).into_iter().flat_map(|owned| &owned.places);
        let ids = places.filter_map(|place| pages.order.get(place));
        ids.filter_map(|id| Some(pages.entries.get(id)?.entry.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use chio_core::crypto::Keypair;

    use super::*;
    use crate::account::Account;
    use crate::message::Part;
    use crate::record::State;

    fn owner(seed: u8) -> PublicKey {
        Keypair::from_seed(&[seed; 32]).public_key().clone()
    }

    fn record(id: u64, size: usize) -> Arc<TaskRecord> {
        Arc::new(TaskRecord {
            id: format!("a2a-task-{id}"),
            context_id: None,
            skill: String::new(),
            state: State::Completed,
            output: vec![Part::text("x".repeat(size))],
            words: Vec::new(),
            history: Vec::new(),
            account: Account::pending(),
            replies: false,
            updated_at: 0,
        })
    }

    fn entry(id: u64, seed: u8, runs: bool) -> Entry {
        let ended = CancellationToken::new();
        if !runs {
            ended.cancel();
        }
        Entry {
            owner: owner(seed),
            record: record(id, 0),
            durable: false,
            cancellation: CancellationToken::new(),
            ended,
        }
    }

    fn ids(book: &Book, seed: u8) -> Vec<u64> {
        book.of(&owner(seed), 0).iter().map(|entry| entry.record.number()).collect()
    }

    #[test]
    fn the_oldest_that_does_not_run_makes_room() {
        let limits = A2aLimits { tasks_per_owner: 3, book_tasks: 4, ..A2aLimits::default() };
        let book = Book::new(limits);
        book.insert(entry(1, 1, true), None, 0).unwrap();
        for id in 2..=4 {
            book.insert(entry(id, 1, false), None, 0).unwrap();
        }
        assert_eq!(ids(&book, 1), [1, 3, 4], "three of one owner");
        book.insert(entry(5, 2, false), None, 0).unwrap();
        book.insert(entry(6, 2, false), None, 0).unwrap();
        assert_eq!((ids(&book, 1), ids(&book, 2)), (vec![1, 4], vec![5, 6]), "four in all");
        let crowded = Book::new(A2aLimits { tasks_per_owner: 1, ..A2aLimits::default() });
        crowded.insert(entry(1, 1, true), None, 0).unwrap();
        assert_eq!(crowded.insert(entry(2, 1, false), None, 0), Err(NotTaken::Full));
        assert_eq!(crowded.insert(entry(1, 1, false), None, 0), Err(NotTaken::Runs));
    }

    #[test]
    fn an_owners_own_tasks_make_room_before_anybody_elses() {
        let book = Book::new(A2aLimits { book_bytes: 40_000, ..A2aLimits::default() });
        book.insert(entry(1, 1, false), None, 0).unwrap();
        for id in 2..=9 {
            book.insert(entry(id, 2, false), None, 0).unwrap();
            book.update(record(id, 5_000));
        }
        assert_eq!(ids(&book, 1), [1], "a quarter of the bytes is the other's");
        assert_eq!(ids(&book, 2).last(), Some(&9));
        assert!(ids(&book, 2).len() < 4);
    }

    #[test]
    fn a_task_is_gone_on_with_once() {
        let book = Book::new(A2aLimits::default());
        let before = entry(1, 1, false);
        let seen = Arc::clone(&before.record);
        book.insert(before, None, 0).unwrap();
        assert_eq!(book.insert(entry(1, 1, true), None, 0), Err(NotTaken::Runs), "which one?");
        book.insert(entry(1, 1, false), Some(&seen), 0).unwrap();
        assert_eq!(book.insert(entry(1, 1, true), Some(&seen), 0), Err(NotTaken::Runs), "late");
    }

    #[test]
    fn tasks_are_kept_for_a_while_and_within_bytes() {
        let book = Book::new(A2aLimits { book_bytes: 10_000, ..A2aLimits::default() });
        book.insert(entry(1, 1, false), None, 100).unwrap();
        book.insert(entry(2, 1, true), None, 100).unwrap();
        assert!(book.find("a2a-task-1", &owner(1), 399).is_some());
        assert!(book.find("a2a-task-1", &owner(2), 399).is_none(), "not theirs");
        assert!(book.find("a2a-task-1", &owner(1), 400).is_none(), "gone");
        assert!(book.find("a2a-task-2", &owner(1), 400).is_some(), "it runs");
        book.insert(entry(3, 1, false), None, 100).unwrap();
        book.update(record(2, 9_900));
        assert_eq!(ids(&book, 1), [2], "the other made room");
        assert!(book.pages().bytes > 10_000, "what runs stays");
        book.forget("a2a-task-2");
        let pages = book.pages();
        assert_eq!((pages.bytes, pages.owned.len()), (0, 0));
    }
}
