//! A small world around one kernel: a clock that stands, tools that do as told, guards that say as
//! told, a ledger that fails when told.

pub(crate) mod authority;
pub(crate) mod caller;
pub(crate) mod clock;
pub(crate) mod guards;
pub(crate) mod inbox;
pub(crate) mod ledger;
pub(crate) mod provider;
pub(crate) mod tokens;
pub(crate) mod tools;
pub(crate) mod world;

use std::sync::{Arc, Mutex};

pub(crate) use caller::TestCaller;
pub(crate) use guards::guard;
pub(crate) use tokens::{grant, usd};
pub(crate) use world::{Setup, World};

/// The second at which every test begins.
pub(crate) const NOW: u64 = 1_700_000_000;
/// The server of the test tools.
pub(crate) const SERVER: &str = "srv";

/// What happened, in order, as each participant tells it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.all().iter().filter(|event| *event == what).count()
    }

    /// Where the first event of this name is.
    pub(crate) fn position(&self, what: &str) -> usize {
        let all = self.all();
        all.iter().position(|event| event == what).unwrap_or_else(|| panic!("{what} in {all:?}"))
    }
}
