//! How much work a call may cause while it is judged, counted in steps.
//!
//! A guard charges what it does to the call, before it does it or as it goes. A call that asks for
//! little is judged where it runs. When its first allowance is spent, the guard begins again on a
//! thread that no other task waits for, with the rest of the budget; when that is spent, or the
//! deadline of the call has passed, the call is denied.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;
use tokio::time::Instant;

use crate::catch::{Catch, Panicked};

/// How many steps a call may take on a thread that others wait for: a millisecond or two.
const SHORT: u64 = 100_000;
/// How many steps a call may take at all: two or three seconds. The largest output that there may be
/// can be looked through for secrets.
const LONG: u64 = 128_000_000;
/// After how many steps the clock is read.
const BETWEEN_LOOKS: u64 = 1 << 16;

/// From how many bytes on they are long to look through.
const LARGE: usize = 64 << 10;

/// How many long judgements run at once. The others wait, so that short calls have processors.
static PLACES: Semaphore = Semaphore::const_new(2);

/// The work that a call may still cause.
#[derive(Debug)]
pub struct Work {
    /// What is left of the first allowance.
    short: AtomicU64,
    /// What is left of the rest.
    long: AtomicU64,
    /// Which of the two is charged.
    is_long: AtomicBool,
    is_spent: AtomicBool,
    deadline: Option<Instant>,
}

/// There is less work left than was asked for. Whatever a guard makes of it, the call is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("judging this takes more steps than a call may cause")]
pub struct Spent;

impl Default for Work {
    /// As much as any call, without a deadline.
    fn default() -> Self {
        Self::until(None)
    }
}

impl Work {
    /// As much as any call may cause, until its deadline.
    pub const fn until(deadline: Option<Instant>) -> Self {
        Self {
            short: AtomicU64::new(SHORT),
            long: AtomicU64::new(LONG),
            is_long: AtomicBool::new(false),
            is_spent: AtomicBool::new(false),
            deadline,
        }
    }

    /// All of it at once, for what is done aside.
    pub fn long() -> Self {
        let work = Self::default();
        work.go_on(true);
        work
    }

    /// As much again, until the same deadline.
    pub const fn anew(&self) -> Self {
        Self::until(self.deadline)
    }

    /// Charges a number of steps, of some 20 nanoseconds each.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn charge(&self, steps: u64) -> Result<(), Spent> {
        let is_long = self.is_long.load(Ordering::Relaxed);
        let left = if is_long { &self.long } else { &self.short };
        let before = left.load(Ordering::Relaxed);
        let after = before.checked_sub(steps).filter(|_| !self.is_spent());
        let is_time = |after| before / BETWEEN_LOOKS != after / BETWEEN_LOOKS;
        match after.filter(|after| !(is_time(*after) && self.is_late())) {
            Some(after) => {
                left.store(after, Ordering::Relaxed);
                Ok(())
            }
            None => {
                self.is_spent.store(true, Ordering::Relaxed);
                Err(Spent)
            }
        }
    }

    /// Charges for a count of things that take `steps` each.
    ///
    /// # Errors
    /// As [`Self::charge`].
    pub fn charge_each(&self, count: usize, steps: usize) -> Result<(), Spent> {
        self.charge(count.saturating_mul(steps) as u64)
    }

    /// How many steps were charged so far.
    pub fn steps(&self) -> u64 {
        let left = |left: &AtomicU64| left.load(Ordering::Relaxed);
        (SHORT - left(&self.short)) + (LONG - left(&self.long))
    }

    /// Whether more was asked for than there was.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// Why a call is denied whose work is spent.
    pub(crate) fn reason(&self) -> String {
        if self.is_late() {
            return "judging it took longer than the call's deadline".to_owned();
        }
        format!("judging it takes more than {LONG} steps")
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    fn go_on(&self, is_long: bool) {
        self.is_long.store(is_long, Ordering::Relaxed);
        self.is_spent.store(false, Ordering::Relaxed);
    }
}

type Judging<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// Has something judged: here, and where that takes too long, once more on a thread that may take
/// its time. Where the work is spent afterwards, what was judged does not count.
pub(crate) async fn judged<'f, T>(
    work: &Work,
    judge: impl Fn() -> Judging<'f, T>,
) -> Result<T, Panicked> {
    work.go_on(false);
    let judged = Catch::new(judge()).await;
    if !work.is_spent() || work.is_late() {
        return judged;
    }
    // It is never closed; if it were, this would only be one too many.
    let _place = PLACES.acquire().await;
    work.go_on(true);
    Catch::new(Aside(judge())).await
}

/// A future that is polled where nothing else waits for the thread.
struct Aside<F>(F);

impl<F: Future + Unpin> Future for Aside<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        aside(|| Pin::new(&mut self.0).poll(context))
    }
}

/// Runs something that takes longer the larger this is: aside where it is large.
pub(crate) async fn when_large<T>(bytes: usize, run: impl FnOnce() -> T) -> T {
    if bytes < LARGE {
        return run();
    }
    let _place = PLACES.acquire().await;
    aside(run)
}

/// Runs something that may take long while the other tasks of this thread go on elsewhere. In a
/// runtime of one thread there is no elsewhere.
pub(crate) fn aside<T>(run: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    if matches!(flavor, Ok(RuntimeFlavor::MultiThread)) { block_in_place(run) } else { run() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_is_too_much_here_is_judged_once_more_elsewhere() {
        let (work, times) = (Work::default(), AtomicUsize::new(0));
        let judge = |steps: u64| {
            let (work, times) = (&work, &times);
            move || -> Judging<'_, bool> {
                times.fetch_add(1, Ordering::Relaxed);
                Box::pin(async move { work.charge(steps).is_ok() })
            }
        };
        assert_eq!(judged(&work, judge(SHORT)).await, Ok(true));
        assert_eq!(judged(&work, judge(LONG)).await, Ok(true), "the rest is another allowance");
        assert_eq!(times.load(Ordering::Relaxed), 3);
        assert_eq!(judged(&work, judge(1)).await, Ok(false));
        assert!(work.is_spent());
        assert_eq!(work.steps(), SHORT + LONG);
        assert_eq!(work.charge(0), Err(Spent), "what is spent stays spent");
    }

    #[tokio::test(start_paused = true)]
    async fn no_work_is_left_behind_the_deadline() {
        let work = Work::until(Some(Instant::now() + Duration::from_secs(1)));
        assert_eq!(work.charge(BETWEEN_LOOKS), Ok(()));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(
            judged(&work, || Box::pin(async { work.charge(SHORT).is_ok() })).await,
            Ok(false)
        );
        assert!(work.reason().contains("deadline"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_go_on_while_something_is_judged_long() {
        let work = Work::default();
        let (told, hears) = std::sync::mpsc::channel();
        let hears = std::sync::Mutex::new(hears);
        let other = tokio::spawn(async move { told.send(thread::current().id()) });
        let judge = || -> Judging<'_, bool> {
            Box::pin(async {
                // Only elsewhere may it wait for the other task.
                work.charge(SHORT + 1).is_ok() && hears.lock().is_ok_and(|it| it.recv().is_ok())
            })
        };
        assert_eq!(judged(&work, judge).await, Ok(true));
        other.await.unwrap().unwrap();
    }
}
