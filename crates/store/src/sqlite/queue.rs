//! What waits for the writer, and how much of it gathers before it is written.
//!
//! When many call at once, a group that is written as soon as the one before is durable has few
//! members, and a sync for each few of them costs more than all else. A group that waits for
//! every caller leaves the processors idle while it is written. So most of the callers
//! gather: while they are written, the others are at work.

use std::mem;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The most members of a group.
const MAX_GROUP: usize = 512;

/// From this many callers on, a group gathers.
const MANY: usize = 8;

/// The longest that a group gathers, should the callers not call again.
const GATHER: Duration = Duration::from_millis(2);

pub(crate) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    enough: Condvar,
}

struct Waiting<T> {
    members: Vec<T>,
    /// This many wake the writer, which waits for them.
    wanted: usize,
    closed: bool,
}

impl<T> Waiting<T> {
    const fn are_few(&self) -> bool {
        self.members.len() < self.wanted && !self.closed
    }
}

/// How many are taken to be calling.
#[derive(Debug, Default)]
pub(crate) struct BatchSizing {
    callers: usize,
}

impl BatchSizing {
    /// How many should gather: three quarters of the callers.
    const fn wanted(&self) -> usize {
        if self.callers < MANY { 1 } else { self.callers - self.callers / 4 }
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let waiting = Waiting { members: Vec::new(), wanted: 1, closed: false };
        Self { waiting: Mutex::new(waiting), enough: Condvar::new() }
    }
}

impl<T> Queue<T> {
    /// Adds a member. False when the queue is closed.
    pub(crate) fn push(&self, member: T) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return false;
        }
        waiting.members.push(member);
        // The writer is woken once for a group, not by each of its members.
        let enough = waiting.members.len() == waiting.wanted;
        drop(waiting);
        if enough {
            self.enough.notify_one();
        }
        true
    }

    /// Counts the callers: those of a group that was written, before any is answered, and those
    /// that came meanwhile. No caller is in both.
    pub(crate) fn count(&self, written: &[T], batch_sizing: &mut BatchSizing) {
        batch_sizing.callers = written.len().saturating_add(self.waiting.lock().members.len());
    }

    /// Waits for the next group and puts it here, where nothing is. False when there will be none.
    pub(crate) fn take(&self, group: &mut Vec<T>, batch_sizing: &BatchSizing) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.wanted = 1;
        self.enough.wait_while(&mut waiting, |waiting| waiting.are_few());
        waiting.wanted = batch_sizing.wanted().min(MAX_GROUP);
        self.enough.wait_while_for(&mut waiting, |waiting| waiting.are_few(), GATHER);
        // Until the writer comes back for more, no caller need wake it.
        waiting.wanted = 0;
        mem::swap(&mut waiting.members, group);
        if group.len() > MAX_GROUP {
            waiting.members = group.split_off(MAX_GROUP);
        }
        !group.is_empty()
    }

    /// From now on no caller can add to it; what is in it is still taken.
    pub(crate) fn close(&self) {
        self.waiting.lock().closed = true;
        self.enough.notify_one();
    }

    /// Closes it and drops what is in it.
    pub(crate) fn abandon(&self) {
        self.close();
        let members = mem::take(&mut self.waiting.lock().members);
        drop(members);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::{BatchSizing, MAX_GROUP, Queue};

    fn taken(queue: &Queue<usize>, batch_sizing: &mut BatchSizing) -> Option<Vec<usize>> {
        let mut group = Vec::new();
        let found = queue.take(&mut group, batch_sizing);
        queue.count(&group, batch_sizing);
        found.then_some(group)
    }

    #[test]
    fn three_quarters_of_those_who_call_gather_and_a_few_who_call_do_not_wait() {
        for (callers, wanted) in [(0, 1), (1, 1), (7, 1), (8, 6), (32, 24), (33, 25)] {
            assert_eq!(BatchSizing { callers }.wanted(), wanted, "{callers}");
        }
    }

    #[test]
    fn those_who_come_while_a_group_is_written_count_as_well() {
        let (queue, mut batch_sizing) = (Queue::default(), BatchSizing::default());
        assert!((0..20).all(|member| queue.push(member)));
        let mut group = Vec::new();
        assert!(queue.take(&mut group, &batch_sizing));
        assert!((20..32).all(|member| queue.push(member)));
        queue.count(&group, &mut batch_sizing);
        assert_eq!((group.len(), batch_sizing.wanted()), (20, 24));
    }

    #[test]
    fn what_is_queued_comes_in_order_and_no_more_at_once_than_allowed() {
        let (queue, mut batch_sizing) = (Queue::default(), BatchSizing::default());
        assert!((0..MAX_GROUP + 3).all(|member| queue.push(member)));
        assert_eq!(taken(&queue, &mut batch_sizing), Some((0..MAX_GROUP).collect()));
        // Many came just now, but no more do: it does not wait for them for ever.
        assert_eq!(taken(&queue, &mut batch_sizing), Some((MAX_GROUP..MAX_GROUP + 3).collect()));
    }

    #[test]
    fn a_closed_queue_gives_what_it_has_and_takes_nothing() {
        let (queue, mut batch_sizing) = (Queue::default(), BatchSizing::default());
        assert!(queue.push(1));
        queue.close();
        assert!(!queue.push(2));
        assert_eq!(taken(&queue, &mut batch_sizing), Some(vec![1]));
        assert_eq!(taken(&queue, &mut batch_sizing), None);
    }

    #[test]
    fn an_abandoned_queue_drops_what_it_has() {
        let (queue, member) = (Queue::default(), Arc::new(()));
        assert!(queue.push(Arc::clone(&member)));
        queue.abandon();
        assert_eq!(Arc::strong_count(&member), 1);
        assert!(!queue.push(member));
    }

    #[test]
    fn whoever_waits_is_woken_by_the_first_member_and_by_the_end() {
        let queue = Arc::new(Queue::default());
        let theirs = Arc::clone(&queue);
        let taking = thread::spawn(move || {
            let mut batch_sizing = BatchSizing::default();
            let mut all = Vec::new();
            while let Some(group) = taken(&theirs, &mut batch_sizing) {
                all.extend(group);
            }
            all
        });
        for member in 0..1000 {
            assert!(queue.push(member));
        }
        queue.close();
        assert_eq!(taking.join().unwrap(), (0..1000).collect::<Vec<_>>());
    }
}
