//! Whether a call was cancelled, and a sleep that ends when it is.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Shared by a call and the code that may cancel it.
#[derive(Debug, Default)]
pub(crate) struct Cancel {
    done: Mutex<bool>,
    changed: Condvar,
}

impl Cancel {
    /// Cancels the call.
    pub(crate) fn cancel(&self) {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Sleeps for so long, or until it is cancelled; answers whether it was.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(done, time, |done| !*done);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
