//! Answers to what servers ask, and what they tell.
#![expect(deprecated, reason = "sampling and roots are on their way out, and still in use")]

use std::sync::{Arc, Mutex};

use rmcp::model::{
    ClientCapabilities, ClientInfo, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, Implementation,
    ListRootsResult, ProgressNotificationParam, Root, SamplingMessage,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::json;

/// What the model answers.
pub(crate) const ANSWER: &str = "forty-two";
/// What the user answers.
pub(crate) const EMAIL: &str = "ada@example.com";
/// The one root.
pub(crate) const ROOT: &str = "file:///fixture";

/// A client with a model, a user and a root.
#[derive(Debug, Default, Clone)]
pub(crate) struct Handler {
    /// Every progress that was told.
    pub(crate) progress: Arc<Mutex<Vec<f64>>>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientInfo {
        let capabilities = ClientCapabilities::builder()
            .enable_roots()
            .enable_sampling()
            .enable_elicitation()
            .build();
        ClientInfo::new(capabilities, Implementation::new("chio-test-client", "1.0.0"))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let message = SamplingMessage::assistant_text(ANSWER);
        Ok(CreateMessageResult::new(message, "none".to_owned()))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let content = json!({"username": "ada", "email": EMAIL});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(ROOT)]))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        if let Ok(mut seen) = self.progress.lock() {
            seen.push(params.progress);
        }
    }
}
