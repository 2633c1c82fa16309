//! The one thread of a process that writes the shared database.
//!
//! Whatever is queued becomes one group, and a group one transaction: while it is made durable, the
//! next group gathers. A member that refuses or fails never fails its neighbours. When the group
//! itself cannot be made durable, each member is told so, and the next group is tried as ever.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use chio_kernel::store::{StoreError, StoreResult};
use tokio::sync::oneshot;

use super::books::Books;

/// The most members of a group.
const MAX_GROUP: usize = 512;

/// Members of a group from which on many are taken to be calling at once: then the next group
/// gathers for a moment, which costs each less than the share of a sync that it saves.
const BUSY: usize = 4;

/// That moment.
const GATHER: Duration = Duration::from_micros(300);

/// A handle on the thread.
pub(crate) struct Writer {
    queue: Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Run(Box<dyn Member>),
    Stop,
}

/// What is called after each group.
pub(crate) type AfterGroup = Arc<dyn Fn(&mut Books) + Send + Sync>;

/// One request of a group.
trait Member: Send {
    /// Does its part of the transaction, perhaps for a second time after all was undone. It may
    /// fail half-way.
    fn run(&mut self, books: &mut Books) -> StoreResult<()>;

    /// Tells the one who asked what came of it, given what became of the group.
    fn answer(self: Box<Self>, group: &StoreResult<()>);
}

struct Request<F, T, R> {
    work: F,
    outcome: Option<StoreResult<T>>,
    reply: R,
}

impl<F, T, R> Member for Request<F, T, R>
where
    F: Fn(&mut Books) -> StoreResult<T> + Send,
    T: Send,
    R: FnOnce(StoreResult<T>) + Send,
{
    fn run(&mut self, books: &mut Books) -> StoreResult<()> {
        let outcome = (self.work)(books);
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

/// The answer to those who come after the end.
pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(books: Books, after_group: AfterGroup) -> StoreResult<Self> {
        let (queue, requests) = channel();
        let thread = thread::Builder::new()
            .name("chio-store-writer".to_owned())
            .spawn(move || serve(&requests, books, &after_group))
            .map_err(|error| StoreError::Unavailable(format!("no writer thread: {error}")))?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)) })
    }

    /// Queues work and waits until it is durable. Work may run twice, the first time undone.
    pub(crate) async fn run<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: Fn(&mut Books) -> StoreResult<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        // Whoever asked may have gone by then; what happened has happened.
        self.submit(work, move |outcome| drop(reply.send(outcome)))?;
        answer.await.map_err(|_| closed())?
    }

    /// As [`Writer::run`], for those who can block.
    pub(crate) fn run_blocking<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: Fn(&mut Books) -> StoreResult<T> + Send + 'static,
    {
        let (reply, answer) = channel();
        self.submit(work, move |outcome| drop(reply.send(outcome)))?;
        answer.recv().map_err(|_| closed())?
    }

    fn submit<T, F, R>(&self, work: F, reply: R) -> StoreResult<()>
    where
        T: Send + 'static,
        F: Fn(&mut Books) -> StoreResult<T> + Send + 'static,
        R: FnOnce(StoreResult<T>) + Send + 'static,
    {
        let request = Request { work, outcome: None, reply };
        self.queue.send(Message::Run(Box::new(request))).map_err(|_| closed())
    }

    /// Finishes what is queued and ends the thread.
    pub(crate) fn stop(&self) {
        let _ = self.queue.send(Message::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

/// Runs groups until it is told to stop or nobody is left who could ask.
fn serve(requests: &Receiver<Message>, mut books: Books, after_group: &AfterGroup) {
    let mut group: Vec<Box<dyn Member>> = Vec::with_capacity(MAX_GROUP);
    let mut last = 0;
    loop {
        let mut stop = match requests.recv() {
            Ok(Message::Run(member)) => {
                group.push(member);
                false
            }
            Ok(Message::Stop) | Err(_) => true,
        };
        stop = stop || drain(requests, &mut group);
        if !stop && last >= BUSY && group.len() < last {
            thread::sleep(GATHER);
            stop = drain(requests, &mut group);
        }
        if !group.is_empty() {
            last = group.len();
            let outcome = run_group(&mut books, &mut group);
            group.drain(..).for_each(|member| member.answer(&outcome));
            after_group(&mut books);
        }
        if stop {
            return;
        }
    }
}

/// Takes what is queued into the group. Tells whether the end has come.
fn drain(requests: &Receiver<Message>, group: &mut Vec<Box<dyn Member>>) -> bool {
    while group.len() < MAX_GROUP {
        match requests.try_recv() {
            Ok(Message::Run(member)) => group.push(member),
            Ok(Message::Stop) => return true,
            Err(_) => return false,
        }
    }
    false
}

/// Makes a group durable, or undoes all of it.
fn run_group(books: &mut Books, group: &mut [Box<dyn Member>]) -> StoreResult<()> {
    let outcome = try_group(books, group);
    if outcome.is_err() {
        books.undo();
    }
    outcome
}

fn try_group(books: &mut Books, group: &mut [Box<dyn Member>]) -> StoreResult<()> {
    books.begin()?;
    // Refusals write nothing, so members hardly ever fail: first all of them are tried without a
    // savepoint each, which would cost more than most members do.
    if group.iter_mut().all(|member| member.run(books).is_ok()) {
        return books.commit();
    }
    books.undo();
    books.begin()?;
    for member in group {
        books.savepoint()?;
        if let Err(error) = member.run(books) {
            // Some errors, such as a full disk, undo the whole transaction by themselves.
            if books.is_undone() {
                return Err(error);
            }
            books.undo_to_savepoint()?;
        }
        books.release_savepoint()?;
    }
    books.commit()
}
