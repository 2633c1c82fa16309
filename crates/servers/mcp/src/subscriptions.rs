//! Who wants to be told when a resource changes.

use std::collections::BTreeMap;

use chio_kernel::SessionContext;
use parking_lot::Mutex;

/// Sessions by the resources that they want to be told of.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<ByUri>);

type ByUri = BTreeMap<String, BTreeMap<String, SessionContext>>;

impl Subscriptions {
    /// Whether any session wants to be told of a resource.
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.0.lock().contains_key(uri)
    }

    /// Of how many resources a session wants to be told.
    pub(crate) fn count(&self, session_id: &str) -> usize {
        self.0.lock().values().filter(|lines| lines.contains_key(session_id)).count()
    }

    pub(crate) fn add(&self, uri: &str, line: SessionContext) {
        let session_id = line.session().id.clone();
        self.0.lock().entry(uri.to_owned()).or_default().insert(session_id, line);
    }

    /// A session wants to be told no more. Tells whether no other session does.
    pub(crate) fn remove(&self, uri: &str, session_id: &str) -> bool {
        let mut by_uri = self.0.lock();
        let Some(lines) = by_uri.get_mut(uri) else { return true };
        lines.remove(session_id);
        let last = lines.is_empty();
        if last {
            by_uri.remove(uri);
        }
        last
    }

    /// A session is gone. Gives the resources of which no other session wants to be told.
    pub(crate) fn remove_session(&self, session_id: &str) -> Vec<String> {
        let uris = self.uris();
        uris.into_iter()
            .filter(|uri| {
                let wants = |lines: &BTreeMap<_, _>| lines.contains_key(session_id);
                let wanted = self.0.lock().get(uri).is_some_and(wants);
                wanted && self.remove(uri, session_id)
            })
            .collect()
    }

    /// Every resource that a session wants to be told of.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }

    /// Who wants to be told of a resource.
    pub(crate) fn lines(&self, uri: &str) -> Vec<SessionContext> {
        self.0.lock().get(uri).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }
}
