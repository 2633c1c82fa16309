//! Work that goes on by itself when the task that waits for it leaves.
//!
//! It runs in the task that waits, which costs nothing; only when that task leaves before the end
//! does it become a task of its own.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The work ended in a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked;

/// Work that is done to its end, whether or not a task waits for it.
///
/// Its owner polls it or drops it: one that is only kept stands still.
#[must_use = "it stands still until it is polled or dropped"]
pub struct DetachOnDrop<T: Send + 'static> {
    /// None when it is over.
    work: Option<Work<T>>,
    runtime: Handle,
}

impl<T: Send + 'static> DetachOnDrop<T> {
    /// Work that begins when it is polled or dropped. To be called within a runtime.
    pub fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { work: Some(Box::pin(work)), runtime: Handle::current() }
    }
}

impl<T: Send + 'static> Future for DetachOnDrop<T> {
    type Output = Result<T, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else { return Poll::Ready(Err(Panicked)) };
        // After a panic it is never polled again, so nothing sees what it left half-done.
        let ended = match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(_) => Err(Panicked),
        };
        let over = self.work.take();
        // What panicked may do so once more when it is taken down.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(over)));
        Poll::Ready(ended)
    }
}

impl<T: Send + 'static> Drop for DetachOnDrop<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            drop(self.runtime.spawn(work));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::Notify;
    use tokio::time::timeout;

    use super::{DetachOnDrop, Panicked};

    #[tokio::test]
    async fn a_caller_that_stays_gets_the_result() {
        assert_eq!(DetachOnDrop::new(async { 7 }).await, Ok(7));
    }

    #[tokio::test]
    async fn it_goes_on_when_nobody_waits_any_more() {
        let (go, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (wait, tell) = (Arc::clone(&go), Arc::clone(&done));
        let work = DetachOnDrop::new(async move {
            wait.notified().await;
            tell.notify_one();
        });
        assert!(timeout(Duration::from_millis(10), work).await.is_err(), "it waits");
        go.notify_one();
        timeout(Duration::from_secs(10), done.notified()).await.unwrap();
    }

    #[tokio::test]
    async fn it_is_done_also_when_it_was_dropped_before_it_began() {
        let done = Arc::new(Notify::new());
        let tell = Arc::clone(&done);
        drop(DetachOnDrop::new(async move { tell.notify_one() }));
        timeout(Duration::from_secs(10), done.notified()).await.unwrap();
    }

    #[tokio::test]
    async fn it_goes_on_when_it_is_dropped_outside_of_the_runtime() {
        let done = Arc::new(Notify::new());
        let tell = Arc::clone(&done);
        let work = DetachOnDrop::new(async move { tell.notify_one() });
        std::thread::spawn(move || drop(work)).join().unwrap();
        timeout(Duration::from_secs(10), done.notified()).await.unwrap();
    }

    #[tokio::test]
    async fn a_panic_is_told_and_stays_within() {
        struct Falls;
        impl Drop for Falls {
            fn drop(&mut self) {
                assert!(std::thread::panicking(), "falls again when it is taken down");
            }
        }
        let work = DetachOnDrop::new(async {
            let _falls = Falls;
            panic!("broken");
        });
        assert_eq!(work.await, Err::<(), _>(Panicked));
    }
}
