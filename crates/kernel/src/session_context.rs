//! The way to a session's client outside of any call: what a server lets it know, and asks it,
//! on its own.
//!
//! What leaves passes the output guards as a call's output does, and a question leaves a child
//! receipt, whose parent is the session.

use std::sync::{Arc, Weak};

use chio_core::capability::PresentedToken;
use serde_json::{Map, Value};

use crate::call::ToolCall;
use crate::call_context::CallContext;
use crate::caller::{AskError, Caller, Question, ServerNotification, Session};
use crate::error::KernelError;
use crate::guard::GuardInput;
use crate::kernel::Inner;
use crate::road::{Draft, Reviewers, session_tool};
use crate::work::Work;

/// The way to a session's client outside of any call.
#[derive(Clone)]
pub struct SessionContext {
    kernel: Weak<Inner>,
    caller: Arc<dyn Caller>,
    /// The authority that the session has.
    token: PresentedToken,
    /// What the client can do, as it says itself.
    client: Arc<Map<String, Value>>,
}

impl SessionContext {
    pub(crate) fn new(
        kernel: &Arc<Inner>,
        caller: Arc<dyn Caller>,
        token: PresentedToken,
        client: Map<String, Value>,
    ) -> Self {
        Self { kernel: Arc::downgrade(kernel), caller, token, client: Arc::new(client) }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        self.caller.session()
    }

    /// What the client can do, as it says itself.
    pub fn client(&self) -> &Map<String, Value> {
        &self.client
    }

    /// Sends the client a notice, as far as the output guards let it leave.
    pub async fn notice(&self, server_id: &str, notice: ServerNotification) {
        let Some(kernel) = self.kernel.upgrade() else { return };
        if !kernel.pipeline().reviews() {
            return self.caller.notice(notice).await;
        }
        // What cannot be looked at does not leave.
        let _ = self
            .with_context(&kernel, server_id, async |context| context.notice(notice).await)
            .await;
    }

    /// Asks the client something on behalf of the server.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn ask(&self, server_id: &str, question: Question) -> Result<Value, AskError> {
        let Some(kernel) = self.kernel.upgrade() else { return Err(AskError::Gone) };
        let asked = self.with_context(&kernel, server_id, async |context| {
            let answer = context.ask(question).await;
            context.settle().await;
            answer
        });
        asked.await.unwrap_or(Err(AskError::Gone))
    }

    async fn with_context<T>(
        &self,
        kernel: &Arc<Inner>,
        server_id: &str,
        work: impl AsyncFnOnce(&CallContext<'_>) -> T,
    ) -> Result<T, KernelError> {
        let (session, tool) = (self.session(), session_tool());
        let arguments = Value::Object(Map::new());
        let mut call = ToolCall::new(
            session.id.clone(),
            self.token.clone(),
            server_id,
            tool.name.clone(),
            arguments,
        );
        let draft = Draft::new(kernel, &mut call, None, session)?;
        let judging = Work::default();
        let input = GuardInput::new(&call, session, tool, &draft.memo, &judging, &draft);
        let reviewers = Reviewers::new(&draft.pipeline, &input);
        let context = CallContext::outside(kernel, &draft, &self.caller, reviewers);
        Ok(work(&context).await)
    }
}
