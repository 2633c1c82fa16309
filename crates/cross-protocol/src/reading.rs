//! Reads and sessions: what an edge asks of a server besides calling its tools.

use std::sync::Arc;

use chio_core::capability::PresentedToken;
use chio_kernel::{
    Caller, ClientNotification, Denial, KernelError, ListKind, Offer, Read, ReadRequest, Session,
};
use serde_json::{Map, Value};

use crate::orchestrator::CrossProtocolOrchestrator;

impl CrossProtocolOrchestrator<'_> {
    /// Looks something up, with the same checks as a call. Dropping the future does not stop it;
    /// kept and not polled, it stands still.
    ///
    /// # Errors
    /// When no receipt could be made durable: then nothing may be released.
    pub async fn read(
        &self,
        request: ReadRequest,
        caller: Arc<dyn Caller>,
    ) -> Result<Read, KernelError> {
        self.kernel().read(request, caller).await
    }

    /// Begins a session with a server; see [`chio_kernel::ResourceProvider::open`]. None for a server that
    /// has only tools.
    ///
    /// # Errors
    /// When the server cannot be had.
    pub async fn begin_session(
        &self,
        server_id: &str,
        caller: Arc<dyn Caller>,
        token: PresentedToken,
        client: Map<String, Value>,
    ) -> Result<Option<Offer>, KernelError> {
        self.kernel().open_session(server_id, caller, token, client).await
    }

    /// Ends a session with a server, and all that was kept for it.
    pub async fn end_session(&self, server_id: &str, session_id: &str) {
        self.kernel().close_session(server_id, session_id).await;
    }

    /// All entries of one kind that a server has, as it writes them and as far as the output guards
    /// let them be shown. None for a server that has only tools.
    ///
    /// # Errors
    /// When the server does not say.
    pub async fn list(
        &self,
        server_id: &str,
        session: &Session,
        kind: ListKind,
    ) -> Result<Option<Arc<Vec<Value>>>, KernelError> {
        self.kernel().list(server_id, session, kind).await
    }

    /// Lets a server know something.
    ///
    /// # Errors
    /// When the server does not take it.
    pub async fn tell(
        &self,
        server_id: &str,
        session: &Session,
        notification: ClientNotification,
    ) -> Result<(), KernelError> {
        self.kernel().tell(server_id, session, notification).await
    }

    /// Whether a token holds for its own subject now. Nothing runs, and nothing is receipted.
    ///
    /// # Errors
    /// With the denial that a call with it would get.
    pub async fn check_token(&self, token: &PresentedToken) -> Result<(), Denial> {
        self.kernel().check_token(token, &token.subject).await
    }

    /// Now, in Unix seconds, as the kernel sees it.
    pub fn now(&self) -> u64 {
        self.kernel().clock().unix_seconds()
    }
}
