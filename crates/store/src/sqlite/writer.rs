//! The one thread of a process that writes the shared database.
//!
//! Whatever is queued becomes one group, and a group one transaction: while it is made durable, the
//! next group gathers. A member that refuses or fails never fails its neighbours. When the group
//! itself cannot be made durable, each member is told so, and the next group is tried as ever.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use chio_kernel::store::{StoreError, StoreResult};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::database::Database;
use super::queue::{BatchSizing, Queue};

/// A handle on the thread.
pub(crate) struct Writer {
    queue: Arc<Queue<Box<dyn Member>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What is called after each group.
pub(crate) type AfterGroup = Arc<dyn Fn(&mut Database) + Send + Sync>;

/// One request of a group.
trait Member: Send {
    /// Does its part of the transaction, perhaps for a second time after all was undone. It may
    /// fail half-way.
    fn run(&mut self, database: &mut Database) -> StoreResult<()>;

    /// Tells the caller what came of it, given what became of the group.
    fn answer(self: Box<Self>, group: &StoreResult<()>);
}

struct Request<F, T, R> {
    work: F,
    outcome: Option<StoreResult<T>>,
    reply: R,
}

impl<F, T, R> Member for Request<F, T, R>
where
    F: Fn(&mut Database) -> StoreResult<T> + Send,
    T: Send,
    R: FnOnce(StoreResult<T>) + Send,
{
    fn run(&mut self, database: &mut Database) -> StoreResult<()> {
        let outcome = (self.work)(database);
        let ran = outcome.as_ref().map(drop).map_err(Clone::clone);
        self.outcome = Some(outcome);
        ran
    }

    fn answer(self: Box<Self>, group: &StoreResult<()>) {
        let Self { work, outcome, reply } = *self;
        // Before the answer: once it is known, nothing of the request holds a lock any more.
        drop(work);
        reply(match group {
            Ok(()) => outcome.unwrap_or_else(|| Err(closed())),
            Err(error) => Err(error.clone()),
        });
    }
}

/// The answer to callers that come after the end.
pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(database: Database, after_group: AfterGroup) -> StoreResult<Self> {
        let queue = Arc::new(Queue::default());
        let served = Arc::clone(&queue);
        let thread = thread::Builder::new()
            .name("chio-store-writer".to_owned())
            .spawn(move || serve(&served, database, &after_group))
            .map_err(|error| StoreError::Unavailable(format!("no writer thread: {error}")))?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)) })
    }

    /// Queues work and waits until it is durable. Work may run twice, the first time undone.
    pub(crate) async fn run<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: Fn(&mut Database) -> StoreResult<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        // The caller may have gone by then; what happened has happened.
        self.submit(work, move |outcome| drop(reply.send(outcome)))?;
        answer.await.map_err(|_| closed())?
    }

    fn submit<T, F, R>(&self, work: F, reply: R) -> StoreResult<()>
    where
        T: Send + 'static,
        F: Fn(&mut Database) -> StoreResult<T> + Send + 'static,
        R: FnOnce(StoreResult<T>) + Send + 'static,
    {
        let request = Request { work, outcome: None, reply };
        if self.queue.push(Box::new(request)) { Ok(()) } else { Err(closed()) }
    }

    /// Finishes what is queued and ends the thread.
    pub(crate) fn stop(&self) {
        self.queue.close();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // No caller is left.
        self.queue.close();
    }
}

/// Runs groups until the queue is closed and empty.
fn serve(queue: &Queue<Box<dyn Member>>, mut database: Database, after_group: &AfterGroup) {
    let _ended = Ended(queue);
    let (mut group, mut batch_sizing) = (Vec::new(), BatchSizing::default());
    while queue.take(&mut group, &batch_sizing) {
        let outcome = run_group(&mut database, &mut group);
        queue.count(&group, &mut batch_sizing);
        group.drain(..).for_each(|member| member.answer(&outcome));
        after_group(&mut database);
    }
}

/// However the thread ends, no caller waits for an answer that never comes.
struct Ended<'a>(&'a Queue<Box<dyn Member>>);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Makes a group durable, or undoes all of it.
fn run_group(database: &mut Database, group: &mut [Box<dyn Member>]) -> StoreResult<()> {
    let outcome = try_group(database, group);
    if outcome.is_err() {
        database.undo();
    }
    outcome
}

fn try_group(database: &mut Database, group: &mut [Box<dyn Member>]) -> StoreResult<()> {
    database.begin()?;
    // Refusals write nothing, so members hardly ever fail: first all of them are tried without a
    // savepoint each, which would cost more than most members do.
    if group.iter_mut().all(|member| member.run(database).is_ok()) {
        return database.commit();
    }
    database.undo();
    database.begin()?;
    for member in group {
        database.savepoint()?;
        if let Err(error) = member.run(database) {
            // Some errors, such as a full disk, undo the whole transaction by themselves.
            if database.is_undone() {
                return Err(error);
            }
            database.undo_to_savepoint()?;
        }
        database.release_savepoint()?;
    }
    database.commit()
}
