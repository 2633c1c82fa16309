//! The tasks of this process, in memory and within limits: those that run, and those that an edge
//! remembers. What the store has too, it decides about.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use chio_core::with_defaults;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// One owner has at most this fraction of the bytes: one in four.
const SHARE: usize = 4;

/// What an edge knows about a task.
pub trait Record: Clone {
    /// The task's id.
    fn id(&self) -> &str;

    /// About how many bytes the record takes in memory.
    fn size(&self) -> usize {
        0
    }

    /// How long the task is retained, if not for the lifetime of the table.
    fn lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A task of the table.
#[derive(Debug, Clone)]
pub struct TaskEntry<O, R> {
    /// The only client that may see the task.
    pub owner: O,
    /// What the edge knows about it.
    pub record: Arc<R>,
    /// Whether the store has it too; then the store decides what its state is.
    pub durable: bool,
    /// Cancelled when the owner cancels the task.
    pub cancellation: CancellationToken,
    /// Cancelled while nothing runs for the task: it has ended, or waits for input.
    pub ended: CancellationToken,
}

impl<O, R> TaskEntry<O, R> {
    /// A task that runs, until `ended` is cancelled. It is cancelled with `parent`.
    pub fn running(owner: O, record: Arc<R>, durable: bool, parent: &CancellationToken) -> Self {
        let cancellation = parent.child_token();
        Self { owner, record, durable, cancellation, ended: CancellationToken::new() }
    }

    /// A task that nothing runs for.
    pub fn idle(owner: O, record: Arc<R>, durable: bool, parent: &CancellationToken) -> Self {
        let entry = Self::running(owner, record, durable, parent);
        entry.ended.cancel();
        entry
    }

    /// Whether something of this process runs for the task.
    pub fn is_running(&self) -> bool {
        !self.ended.is_cancelled()
    }
}

/// Why a task was not inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertError {
    /// Its id belongs to a task that runs, or that nothing else has.
    Taken,
    /// The limits are reached by tasks that run.
    Full,
}

with_defaults! {
    /// The limits of a table. The default has none but the lifetimes of the records.
    #[derive(Debug, Clone)]
    pub struct TableLimits {
        /// The most tasks of one owner.
        pub tasks_per_owner: usize = usize::MAX,
        /// The most tasks.
        pub tasks: usize = usize::MAX,
        /// The most bytes of records; one owner has a quarter of them.
        pub bytes: usize = usize::MAX,
        /// How long a task is retained from when it was inserted or last updated.
        pub lifetime: Duration = Duration::MAX,
    }
}

/// Tasks by their ids. When a limit is reached, the oldest that does not run makes room.
#[derive(Debug)]
pub struct TaskTable<O, R> {
    state: Mutex<State<O, R>>,
    limits: TableLimits,
}

#[derive(Debug)]
struct State<O, R> {
    /// By a number that counts insertions.
    slots: BTreeMap<u64, Slot<O, R>>,
    sequences: HashMap<String, u64>,
    owners: HashMap<O, Usage>,
    bytes: usize,
    next_sequence: u64,
    /// When expired tasks were last removed, in Unix seconds.
    swept_at: Option<u64>,
}

/// What one owner has in the table.
#[derive(Debug, Default)]
struct Usage {
    sequences: BTreeSet<u64>,
    bytes: usize,
}

#[derive(Debug)]
struct Slot<O, R> {
    entry: TaskEntry<O, R>,
    bytes: usize,
    /// The first Unix second in which the task is gone, unless it runs.
    expires_at: u64,
}

impl<O, R> Slot<O, R> {
    fn is_expired(&self, now: u64) -> bool {
        self.expires_at <= now && !self.entry.is_running()
    }
}

impl<O: Clone + Eq + Hash, R: Record> State<O, R> {
    fn remove(&mut self, sequence: u64) {
        let Some(slot) = self.slots.remove(&sequence) else { return };
        self.sequences.remove(slot.entry.record.id());
        self.bytes = self.bytes.saturating_sub(slot.bytes);
        if let Some(usage) = self.owners.get_mut(&slot.entry.owner) {
            usage.sequences.remove(&sequence);
            usage.bytes = usage.bytes.saturating_sub(slot.bytes);
            if usage.sequences.is_empty() {
                self.owners.remove(&slot.entry.owner);
            }
        }
    }

    fn remove_id(&mut self, id: &str) {
        if let Some(sequence) = self.sequences.get(id).copied() {
            self.remove(sequence);
        }
    }

    fn slot(&self, id: &str) -> Option<&Slot<O, R>> {
        self.slots.get(self.sequences.get(id)?)
    }

    /// Removes what has expired. Times are whole seconds, so once in each is enough.
    fn sweep(&mut self, now: u64) {
        if self.swept_at.replace(now) == Some(now) {
            return;
        }
        let expired = self.slots.iter().filter(|(_, slot)| slot.is_expired(now));
        let expired: Vec<u64> = expired.map(|(sequence, _)| *sequence).collect();
        expired.into_iter().for_each(|sequence| self.remove(sequence));
    }

    /// Removes the oldest task of an owner that does not run. False when there is none.
    fn evict_oldest_of(&mut self, owner: &O) -> bool {
        let oldest = self.owner_slots(owner).find(|(_, slot)| !slot.entry.is_running());
        let oldest = oldest.map(|(sequence, _)| sequence);
        oldest.map(|sequence| self.remove(sequence)).is_some()
    }

    /// Removes the oldest task that does not run. False when there is none.
    fn evict_oldest(&mut self) -> bool {
        let oldest = self.slots.iter().find(|(_, slot)| !slot.entry.is_running());
        let oldest = oldest.map(|(sequence, _)| *sequence);
        oldest.map(|sequence| self.remove(sequence)).is_some()
    }

    /// Enforces the limits of bytes: an owner's own tasks make room before those of others.
    fn evict_bytes(&mut self, owner: &O, limit: usize) {
        let is_above =
            |state: &Self| state.owners.get(owner).is_some_and(|usage| usage.bytes > limit / SHARE);
        while is_above(self) && self.evict_oldest_of(owner) {}
        while self.bytes > limit && self.evict_oldest() {}
    }

    /// The tasks of an owner, the oldest first.
    fn owner_slots(&self, owner: &O) -> impl Iterator<Item = (u64, &Slot<O, R>)> {
        let sequences = self.owners.get(owner).into_iter().flat_map(|usage| &usage.sequences);
        sequences.filter_map(|sequence| Some((*sequence, self.slots.get(sequence)?)))
    }
}

impl<O: Clone + Eq + Hash, R: Record> TaskTable<O, R> {
    /// An empty table.
    pub fn new(limits: TableLimits) -> Self {
        let state = State {
            slots: BTreeMap::new(),
            sequences: HashMap::new(),
            owners: HashMap::new(),
            bytes: 0,
            next_sequence: 0,
            swept_at: None,
        };
        Self { state: Mutex::new(state), limits }
    }

    fn expires_at(&self, record: &R, now: u64) -> u64 {
        now.saturating_add(record.lifetime().unwrap_or(self.limits.lifetime).as_secs())
    }

    /// Inserts a task. One with its id must be durable, and not run.
    ///
    /// # Errors
    /// When its id belongs to another task, or nothing can make room for it.
    pub fn insert(&self, entry: TaskEntry<O, R>, now: u64) -> Result<(), InsertError> {
        let mut state = self.state.lock();
        state.sweep(now);
        let id = entry.record.id().to_owned();
        if let Some(known) = state.slot(&id) {
            if known.entry.is_running() || !known.entry.durable {
                return Err(InsertError::Taken);
            }
            state.remove_id(&id);
        }
        let owner = entry.owner.clone();
        let owned = state.owners.get(&owner).map_or(0, |usage| usage.sequences.len());
        if owned >= self.limits.tasks_per_owner && !state.evict_oldest_of(&owner) {
            return Err(InsertError::Full);
        }
        if state.slots.len() >= self.limits.tasks && !state.evict_oldest() {
            return Err(InsertError::Full);
        }
        let sequence = state.next_sequence;
        state.next_sequence += 1;
        state.sequences.insert(id, sequence);
        let bytes = entry.record.size();
        let usage = state.owners.entry(owner.clone()).or_default();
        usage.sequences.insert(sequence);
        usage.bytes = usage.bytes.saturating_add(bytes);
        state.bytes = state.bytes.saturating_add(bytes);
        let expires_at = self.expires_at(&entry.record, now);
        state.slots.insert(sequence, Slot { entry, bytes, expires_at });
        state.evict_bytes(&owner, self.limits.bytes);
        Ok(())
    }

    /// Replaces the record of a task, if the table has it, and extends its lifetime. Older tasks
    /// make room where the record is larger than before.
    pub fn update(&self, record: Arc<R>, now: u64) {
        let mut state = self.state.lock();
        let bytes = record.size();
        let expires_at = self.expires_at(&record, now);
        let Some(sequence) = state.sequences.get(record.id()).copied() else { return };
        let Some(slot) = state.slots.get_mut(&sequence) else { return };
        let before = std::mem::replace(&mut slot.bytes, bytes);
        slot.expires_at = slot.expires_at.max(expires_at);
        slot.entry.record = record;
        let owner = slot.entry.owner.clone();
        state.bytes = state.bytes.saturating_sub(before).saturating_add(bytes);
        if let Some(usage) = state.owners.get_mut(&owner) {
            usage.bytes = usage.bytes.saturating_sub(before).saturating_add(bytes);
        }
        state.evict_bytes(&owner, self.limits.bytes);
    }

    /// A task of this owner.
    pub fn find(&self, id: &str, owner: &O, now: u64) -> Option<TaskEntry<O, R>> {
        let mut state = self.state.lock();
        state.sweep(now);
        let slot = state.slot(id).filter(|slot| !slot.is_expired(now))?;
        (slot.entry.owner == *owner).then(|| slot.entry.clone())
    }

    /// Removes a task.
    pub fn remove(&self, id: &str) {
        self.state.lock().remove_id(id);
    }

    /// The tasks of this owner, the oldest first.
    pub fn list(&self, owner: &O, now: u64) -> Vec<TaskEntry<O, R>> {
        let mut state = self.state.lock();
        state.sweep(now);
        let slots = state.owner_slots(owner).filter(|(_, slot)| !slot.is_expired(now));
        slots.map(|(_, slot)| slot.entry.clone()).collect()
    }

    /// The number of tasks of this owner.
    pub fn count(&self, owner: &O, now: u64) -> usize {
        self.state.lock().owner_slots(owner).filter(|(_, slot)| !slot.is_expired(now)).count()
    }

    /// Whether a task of any owner runs.
    pub fn any_running(&self) -> bool {
        self.state.lock().slots.values().any(|slot| slot.entry.is_running())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone)]
    struct Task {
        id: String,
        size: usize,
    }

    impl Record for Task {
        fn id(&self) -> &str {
            &self.id
        }

        fn size(&self) -> usize {
            700 + self.size
        }
    }

    type Table = TaskTable<u8, Task>;

    const LIMITS: TableLimits = TableLimits {
        tasks_per_owner: 1024,
        tasks: 4096,
        bytes: 64 << 20,
        lifetime: Duration::from_secs(300),
    };

    fn record(id: u64, size: usize) -> Arc<Task> {
        Arc::new(Task { id: id.to_string(), size })
    }

    fn entry(id: u64, owner: u8, runs: bool) -> TaskEntry<u8, Task> {
        let parent = CancellationToken::new();
        match runs {
            true => TaskEntry::running(owner, record(id, 0), false, &parent),
            false => TaskEntry::idle(owner, record(id, 0), false, &parent),
        }
    }

    fn ids(table: &Table, owner: u8) -> Vec<u64> {
        table.list(&owner, 0).iter().map(|entry| entry.record.id.parse().unwrap()).collect()
    }

    #[test]
    fn the_oldest_that_does_not_run_makes_room() {
        let table = Table::new(TableLimits { tasks_per_owner: 3, tasks: 4, ..LIMITS });
        table.insert(entry(1, 1, true), 0).unwrap();
        for id in 2..=4 {
            table.insert(entry(id, 1, false), 0).unwrap();
        }
        assert_eq!(ids(&table, 1), [1, 3, 4], "three of one owner");
        table.insert(entry(5, 2, false), 0).unwrap();
        table.insert(entry(6, 2, false), 0).unwrap();
        assert_eq!((ids(&table, 1), ids(&table, 2)), (vec![1, 4], vec![5, 6]), "four in all");
        assert_eq!((table.count(&1, 0), table.any_running()), (2, true));
        let crowded = Table::new(TableLimits { tasks_per_owner: 1, ..LIMITS });
        crowded.insert(entry(1, 1, true), 0).unwrap();
        assert_eq!(crowded.insert(entry(2, 1, false), 0), Err(InsertError::Full));
        assert_eq!(crowded.insert(entry(1, 1, false), 0), Err(InsertError::Taken));
    }

    #[test]
    fn the_tasks_of_an_owner_make_room_before_those_of_others() {
        let table = Table::new(TableLimits { bytes: 40_000, ..LIMITS });
        table.insert(entry(1, 1, false), 0).unwrap();
        for id in 2..=9 {
            table.insert(entry(id, 2, false), 0).unwrap();
            table.update(record(id, 5_000), 0);
        }
        assert_eq!(ids(&table, 1), [1], "a quarter of the bytes is the other's");
        assert_eq!(ids(&table, 2).last(), Some(&9));
        assert!(ids(&table, 2).len() < 4);
    }

    #[test]
    fn a_task_that_the_store_has_takes_the_place_of_the_one_before_unless_that_runs() {
        let table = Table::new(LIMITS);
        let entry = |runs, durable| TaskEntry { durable, ..entry(1, 1, runs) };
        table.insert(entry(false, false), 0).unwrap();
        assert_eq!(table.insert(entry(true, true), 0), Err(InsertError::Taken));
        table.remove("1");
        table.insert(entry(false, true), 0).unwrap();
        table.insert(entry(true, true), 0).unwrap();
        assert_eq!(table.insert(entry(true, true), 0), Err(InsertError::Taken));
    }

    #[test]
    fn tasks_are_retained_for_their_lifetime_and_within_bytes() {
        let table = Table::new(TableLimits { bytes: 10_000, ..LIMITS });
        table.insert(entry(1, 1, false), 100).unwrap();
        let running = entry(2, 1, true);
        table.insert(running.clone(), 100).unwrap();
        assert!(table.find("1", &1, 399).is_some());
        assert!(table.find("1", &2, 399).is_none(), "not theirs");
        assert!(table.find("1", &1, 400).is_none(), "gone");
        assert!(table.find("2", &1, 400).is_some(), "it runs");
        table.insert(entry(3, 1, false), 100).unwrap();
        table.update(record(2, 9_900), 0);
        assert_eq!(ids(&table, 1), [2], "the other made room");
        assert!(table.state.lock().bytes > 10_000, "what runs stays");
        assert!(table.find("2", &1, 400).is_some(), "it runs");
        running.ended.cancel();
        assert!(table.find("2", &1, 400).is_none() && table.list(&1, 400).is_empty(), "it ended");
        table.remove("2");
        let state = table.state.lock();
        assert_eq!((state.bytes, state.owners.len()), (0, 0));
    }

    #[test]
    fn a_record_may_have_its_own_lifetime() {
        #[derive(Clone)]
        struct Short;
        impl Record for Short {
            fn id(&self) -> &str {
                "short"
            }

            fn lifetime(&self) -> Option<Duration> {
                Some(Duration::from_secs(1))
            }
        }
        let table = TaskTable::new(TableLimits::default());
        let entry = TaskEntry::idle((), Arc::new(Short), true, &CancellationToken::new());
        table.insert(entry, 10).unwrap();
        assert_eq!((table.count(&(), 10), table.count(&(), 11)), (1, 0));
    }
}
