//! A future whose panic is an answer: guards and tools are other people's code.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The polled future panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Panicked;

/// Runs a future to its end or to its panic.
pub(crate) struct Catch<F>(F);

impl<F: Future + Unpin> Catch<F> {
    pub(crate) const fn new(future: F) -> Self {
        Self(future)
    }
}

impl<F: Future + Unpin> Future for Catch<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // After a panic the future is never polled again, so nothing sees what it left half-done.
        let future = Pin::new(&mut self.0);
        match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    }
}
