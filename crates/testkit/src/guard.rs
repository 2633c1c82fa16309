//! A guard that counts how often it is asked, and comes to what a test wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use chio_kernel::{ChioKernel, Guard, GuardInput, GuardOutcome, Pipeline, Verdict};

/// What the guard comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The call may go on.
    Allows,
    /// It may not.
    Denies,
    /// The guard cannot say.
    Fails,
    /// The guard panics.
    Panics,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Allows, Self::Denies, Self::Fails, Self::Panics];

    /// The reason of the denial, as its receipt has it.
    #[must_use]
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Allows => None,
            Self::Denies => Some("not today"),
            Self::Fails => Some("the guard failed: no oracle"),
            Self::Panics => Some("the guard panicked"),
        }
    }
}

/// The guard.
#[derive(Debug, Clone)]
pub struct CountingGuard {
    way: Way,
    asked: Arc<AtomicUsize>,
}

impl CountingGuard {
    /// Its name in receipts.
    pub const NAME: &'static str = "counting";

    /// Makes it the only guard of a kernel.
    #[must_use]
    pub fn alone_in(kernel: &ChioKernel, way: Way) -> Self {
        let guard = Self { way, asked: Arc::default() };
        kernel.set_pipeline(Pipeline::new("hash", vec![Arc::new(guard.clone())]));
        guard
    }

    /// How often it was asked.
    #[must_use]
    pub fn count(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Guard for CountingGuard {
    fn name(&self) -> &str {
        Self::NAME
    }

    async fn check(&self, _input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.way {
            Way::Allows => Ok(Verdict::Allow.into()),
            Way::Denies => Ok(Verdict::Deny("not today".to_owned()).into()),
            Way::Fails => Err("no oracle".to_owned()),
            #[expect(clippy::panic, reason = "as the test wants it")]
            Way::Panics => panic!("as the test wants it"),
        }
    }
}
