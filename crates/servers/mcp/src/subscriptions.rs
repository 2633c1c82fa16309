//! The sessions that have subscribed to resources.

use std::collections::BTreeMap;

use chio_kernel::SessionContext;
use parking_lot::Mutex;

/// Sessions by the resources that they have subscribed to.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<ByUri>);

type ByUri = BTreeMap<String, BTreeMap<String, SessionContext>>;

impl Subscriptions {
    /// Whether a session has subscribed to a resource.
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.0.lock().contains_key(uri)
    }

    /// How many resources a session has subscribed to.
    pub(crate) fn count(&self, session_id: &str) -> usize {
        self.0.lock().values().filter(|sessions| sessions.contains_key(session_id)).count()
    }

    pub(crate) fn add(&self, uri: &str, session: SessionContext) {
        let session_id = session.session().id.clone();
        self.0.lock().entry(uri.to_owned()).or_default().insert(session_id, session);
    }

    /// Ends a subscription. True when no other session has subscribed to the resource.
    pub(crate) fn remove(&self, uri: &str, session_id: &str) -> bool {
        let mut by_uri = self.0.lock();
        let Some(sessions) = by_uri.get_mut(uri) else { return true };
        sessions.remove(session_id);
        let last = sessions.is_empty();
        if last {
            by_uri.remove(uri);
        }
        last
    }

    /// Ends the subscriptions of a session. Gives the resources that no other session has subscribed to.
    pub(crate) fn remove_session(&self, session_id: &str) -> Vec<String> {
        let uris = self.uris();
        uris.into_iter()
            .filter(|uri| {
                let has = |sessions: &BTreeMap<_, _>| sessions.contains_key(session_id);
                let subscribed = self.0.lock().get(uri).is_some_and(has);
                subscribed && self.remove(uri, session_id)
            })
            .collect()
    }

    /// Every resource that a session has subscribed to.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }

    /// The sessions that have subscribed to a resource.
    pub(crate) fn sessions(&self, uri: &str) -> Vec<SessionContext> {
        self.0.lock().get(uri).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }
}
