//! What a child says outside of any call: to the session that it belongs to, and to no other.

use std::sync::Arc;
use std::time::Duration;

use chio_kernel::{ServerNotification, SessionContext};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::child::{Child, Place};
use crate::conversation::{Asked, Change, Conversation, FORWARDED, Held, Outside};
use crate::subscriptions::Subscriptions;

/// How many questions outside of any call are with the client at once.
const MAX_QUESTIONS: usize = 8;
/// How long changes of lists are gathered.
const GATHER: Duration = Duration::from_millis(20);

/// Which sessions a child serves.
pub(crate) enum Home {
    /// One session.
    Session(SessionContext),
    /// All sessions; some have asked to be told when a resource changes.
    Shared(Arc<Subscriptions>),
}

impl Home {
    /// The session's name.
    pub(crate) fn session_id(&self) -> Option<&str> {
        match self {
            Self::Session(line) => Some(&line.session().id),
            Self::Shared(_) => None,
        }
    }

    /// What the client can do that the child is told of.
    pub(crate) fn announced(&self) -> Option<Map<String, Value>> {
        let Self::Session(line) = self else { return None };
        let client = line.client().iter().filter(|(name, _)| FORWARDED.contains(&name.as_str()));
        Some(client.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// Passes a notice on to the sessions that it is for.
    async fn tell(&self, server_id: &str, notice: ServerNotification) {
        match self {
            Self::Session(line) => line.notice(server_id, notice).await,
            Self::Shared(subscriptions) => {
                let Some(Value::String(uri)) = notice.params.get("uri") else { return };
                for line in subscriptions.lines(uri) {
                    line.notice(server_id, notice.clone()).await;
                }
            }
        }
    }
}

/// Passes on what belongs to no call, until the child is gone.
pub(crate) async fn attend(
    place: Arc<Place>,
    conversation: Arc<Conversation>,
    mut outside: mpsc::Receiver<Outside>,
) {
    let mut questions = JoinSet::new();
    let attending = async {
        while let Some(said) = outside.recv().await {
            match said {
                Outside::ServerNotification(Held { notice, .. }) => {
                    place.home.tell(&place.settings.server_id, notice).await;
                }
                Outside::Question(asked) => {
                    while questions.try_join_next().is_some() {}
                    // What is dropped is answered with an error.
                    if questions.len() < MAX_QUESTIONS {
                        questions.spawn(ask(Arc::clone(&place), asked));
                    }
                }
            }
        }
    };
    tokio::select! {
        () = attending => {}
        () = conversation.over().cancelled() => {}
    }
}

async fn ask(place: Arc<Place>, asked: Asked) {
    let Asked { question, reply, .. } = asked;
    if let Home::Session(line) = &place.home {
        reply.give(line.ask(&place.settings.server_id, question).await);
    }
}

/// Brings up to date what changes, and tells the session, until the child is gone.
pub(crate) async fn follow(place: Arc<Place>, child: Arc<Child>) {
    let following = async {
        loop {
            for change in child.conversation.changes().await {
                take_up(&place, &child, change).await;
            }
            tokio::time::sleep(GATHER).await;
        }
    };
    tokio::select! {
        () = following => {}
        () = child.conversation.over().cancelled() => {}
    }
}

async fn take_up(place: &Place, child: &Child, change: Change) {
    if change == Change::Tools
        && let Err(error) = child.list_tools().await
    {
        place.settings.note(format_args!("its tools cannot be listed again: {error}"));
    }
    let notice = ServerNotification { method: change.method().to_owned(), params: Map::new() };
    place.home.tell(&place.settings.server_id, notice).await;
}
