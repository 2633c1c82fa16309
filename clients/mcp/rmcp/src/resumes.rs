//! Counts how often the SDK says that it takes up a stream again.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// How often so far.
pub(crate) fn count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// Begins to count.
pub(crate) fn watch() {
    let _ = tracing::subscriber::set_global_default(Watcher);
}

struct Watcher;

struct Message;

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" && format!("{value:?}").contains("gracefully, reconnecting") {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Subscriber for Watcher {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("rmcp")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Message);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
