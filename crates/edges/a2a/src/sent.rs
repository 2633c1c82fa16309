//! Messages that are on their way to a task: the same message of the same caller begins one task.

use std::collections::HashMap;
use std::sync::Arc;

use chio_core::crypto::PublicKey;
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Whose message it is, and what the caller calls it.
type Name = (PublicKey, String);

/// The messages that no task in the store is known by yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentMessages(Arc<Mutex<HashMap<Name, OnItsWay>>>);

/// A message, and the task that it begins.
#[derive(Debug, Clone)]
pub(crate) struct OnItsWay {
    pub(crate) task_id: String,
    /// Cancelled when the store has the task, or there is none.
    pub(crate) arrived: CancellationToken,
}

/// A message is on its way until this is dropped.
#[derive(Debug)]
pub(crate) struct Arrives {
    name: Option<Name>,
    sent: SentMessages,
    _arrived: DropGuard,
}

impl SentMessages {
    /// Sends a message on its way.
    ///
    /// # Errors
    /// With the message that is on its way by this name.
    pub(crate) fn begin(
        &self,
        owner: &PublicKey,
        message: Option<&str>,
        task_id: &str,
    ) -> Result<Arrives, OnItsWay> {
        let arrived = CancellationToken::new();
        let name = message.map(|message| (owner.clone(), message.to_owned()));
        if let Some(name) = &name {
            let mut messages = self.0.lock();
            if let Some(known) = messages.get(name) {
                return Err(known.clone());
            }
            let on_its_way = OnItsWay { task_id: task_id.to_owned(), arrived: arrived.clone() };
            messages.insert(name.clone(), on_its_way);
        }
        Ok(Arrives { name, sent: self.clone(), _arrived: arrived.drop_guard() })
    }
}

impl Drop for Arrives {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.sent.0.lock().remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use chio_core::crypto::Keypair;

    use super::*;

    #[test]
    fn one_message_of_a_name_is_on_its_way() {
        let owner = |seed| Keypair::from_seed(&[seed; 32]).public_key().clone();
        let sent = SentMessages::default();
        let first = sent.begin(&owner(1), Some("m"), "t-1").unwrap();
        let known = sent.begin(&owner(1), Some("m"), "t-2").unwrap_err();
        assert_eq!((&*known.task_id, known.arrived.is_cancelled()), ("t-1", false));
        assert!(sent.begin(&owner(2), Some("m"), "t-3").is_ok(), "another caller's");
        assert!(sent.begin(&owner(1), None, "t-4").is_ok(), "without a name");
        drop(first);
        assert!(known.arrived.is_cancelled());
        assert!(sent.begin(&owner(1), Some("m"), "t-5").is_ok());
    }
}
