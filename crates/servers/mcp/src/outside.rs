//! What a child says outside of any call: to the session that it belongs to, and to no other.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chio_kernel::{ServerNotification, SessionContext};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::child::{Child, ChildConfig};
use crate::conversation::{Audience, Change, ChildQuestion, Outside, QueuedNotification};
use crate::options::{ComingClient, Sharing};
use crate::subscriptions::Subscriptions;

/// How many questions outside of any call are with the client at once.
const MAX_QUESTIONS: usize = 8;
/// How long changes of lists are gathered.
const GATHER: Duration = Duration::from_millis(20);

/// Which sessions a child serves.
pub(crate) enum ServedSessions {
    /// One session.
    Session(SessionContext),
    /// All sessions; some have subscribed to resources.
    Shared(Arc<Subscriptions>),
    /// The first session that comes, if its client is the one that was told of before.
    First(First),
}

/// The place of the first session.
pub(crate) struct First {
    pub(crate) client: ComingClient,
    /// What the child was told that the client can do.
    audience: OnceLock<Audience>,
    session: OnceLock<SessionContext>,
    has_come: CancellationToken,
}

impl First {
    pub(crate) fn new(client: ComingClient) -> Self {
        let (audience, session) = (OnceLock::new(), OnceLock::new());
        Self { client, audience, session, has_come: CancellationToken::new() }
    }

    /// What the client can do. Waits until that is known.
    async fn audience(&self) -> Audience {
        let mut client = self.client.clone();
        let known = client.wait_for(Option::is_some).await.ok().and_then(|known| known.clone());
        self.audience.get_or_init(|| Audience::session(&known.unwrap_or_default())).clone()
    }

    /// Takes a session in; false where another has come before, or its client is another.
    fn take(&self, context: &SessionContext) -> bool {
        let is_announced = self.audience.get() == Some(&Audience::session(context.client()));
        let taken = is_announced && self.session.set(context.clone()).is_ok();
        if taken {
            self.has_come.cancel();
        }
        taken
    }
}

impl ServedSessions {
    /// The session, where there is one.
    pub(crate) fn session(&self) -> Option<&SessionContext> {
        match self {
            Self::Session(session) => Some(session),
            Self::First(first) => first.session.get(),
            Self::Shared(_) => None,
        }
    }

    /// The name of the session that the child was started for.
    pub(crate) fn session_id(&self) -> Option<&str> {
        match self {
            Self::Session(session) => Some(&session.session().id),
            Self::First(_) | Self::Shared(_) => None,
        }
    }

    /// Whom the child speaks to. Waits until that is known.
    pub(crate) async fn audience(&self, sharing: Sharing) -> Audience {
        match self {
            Self::Session(session) => Audience::session(session.client()),
            Self::First(first) => first.audience().await,
            Self::Shared(_) if sharing == Sharing::Shared => Audience::Shared,
            Self::Shared(_) => Audience::Nobody,
        }
    }

    /// Takes the first session in, where there is a place for it.
    pub(crate) fn take(&self, context: &SessionContext) -> bool {
        matches!(self, Self::First(first) if first.take(context))
    }

    /// Waits until there is a session to tell things to.
    async fn ready(&self) {
        if let Self::First(first) = self {
            first.has_come.cancelled().await;
        }
    }

    /// Passes a notification on to the sessions that it is for.
    async fn notify(&self, server_id: &str, notification: ServerNotification) {
        match self {
            Self::Session(session) => session.notice(server_id, notification).await,
            Self::First(first) => {
                if let Some(session) = first.session.get() {
                    session.notice(server_id, notification).await;
                }
            }
            Self::Shared(subscriptions) => {
                let Some(Value::String(uri)) = notification.params.get("uri") else { return };
                for session in subscriptions.sessions(uri) {
                    session.notice(server_id, notification.clone()).await;
                }
            }
        }
    }
}

/// Passes on what belongs to no call, until the child is gone.
pub(crate) async fn forward(
    config: Arc<ChildConfig>,
    child: Arc<Child>,
    mut outside: mpsc::Receiver<Outside>,
) {
    let mut questions = JoinSet::new();
    let forwarding = async {
        config.sessions.ready().await;
        while let Some(said) = outside.recv().await {
            match said {
                Outside::ServerNotification(QueuedNotification { notification, .. }) => {
                    config.sessions.notify(&config.settings.server_id, notification).await;
                }
                Outside::Question(asked) => {
                    while questions.try_join_next().is_some() {}
                    // What is dropped is answered with an error.
                    if questions.len() < MAX_QUESTIONS {
                        questions.spawn(ask(Arc::clone(&config), asked));
                    }
                }
            }
        }
    };
    tokio::select! {
        () = forwarding => {}
        () = child.conversation.over().cancelled() => {}
    }
}

async fn ask(config: Arc<ChildConfig>, asked: ChildQuestion) {
    let ChildQuestion { question, reply, .. } = asked;
    if let Some(session) = config.sessions.session() {
        reply.give(session.ask(&config.settings.server_id, question).await);
    }
}

/// Lists again what has changed, and notifies the sessions, until the child is gone.
pub(crate) async fn follow(config: Arc<ChildConfig>, child: Arc<Child>) {
    let following = async {
        loop {
            for change in child.conversation.changes().await {
                apply_change(&config, &child, change).await;
            }
            tokio::time::sleep(GATHER).await;
        }
    };
    tokio::select! {
        () = following => {}
        () = child.conversation.over().cancelled() => {}
    }
}

async fn apply_change(config: &ChildConfig, child: &Child, change: Change) {
    if change == Change::Tools
        && let Err(error) = child.list_tools().await
    {
        config.settings.note(format_args!("its tools cannot be listed again: {error}"));
    }
    let notification =
        ServerNotification { method: change.method().to_owned(), params: Map::new() };
    config.sessions.notify(&config.settings.server_id, notification).await;
}
