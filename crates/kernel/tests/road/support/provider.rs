//! A server with a library that does as it is told.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chio_core::manifest::{MANIFEST_SCHEMA, ToolDefinition, ToolManifest};
use chio_core::receipt::OperationKind;
use chio_kernel::{
    CallContext, ClientNotification, KernelError, ListKind, Offer, Permit, Question, ReadKind,
    Reading, ResourceProvider, ServerNotification, Session, SessionContext, ToolInvocation,
    ToolOutput, ToolServerConnection,
};
use serde_json::{Map, Value, json};

use super::Journal;

/// The server's name.
pub(crate) const LIBRARY: &str = "lib";

/// What a test can look at and change while the server runs.
#[derive(Clone)]
pub(crate) struct TestProvider {
    journal: Journal,
    manifest: Arc<Mutex<Arc<ToolManifest>>>,
    pub(crate) session_context: Arc<Mutex<Option<SessionContext>>>,
}

fn manifest(tools: &[&str]) -> Arc<ToolManifest> {
    let tool = |name: &&str| ToolDefinition {
        name: (*name).to_owned(),
        description: "A test tool".to_owned(),
        input_schema: Map::new(),
        output_schema: None,
        pricing: None,
        has_side_effects: false,
        latency_hint: None,
    };
    Arc::new(ToolManifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        server_id: LIBRARY.to_owned(),
        name: "A library".to_owned(),
        description: None,
        version: "1".to_owned(),
        tools: tools.iter().map(tool).collect(),
        server_tools: Vec::new(),
        required_permissions: None,
        public_key: super::tokens::issuer().public_key().clone(),
    })
}

impl TestProvider {
    pub(crate) fn new(journal: &Journal) -> Self {
        let manifest = Arc::new(Mutex::new(manifest(&["tell"])));
        Self { journal: journal.clone(), manifest, session_context: Arc::default() }
    }

    /// From now on the server has these tools.
    pub(crate) fn have(&self, tools: &[&str]) {
        *self.manifest.lock().unwrap() = manifest(tools);
    }
}

/// A notice with this text.
pub(crate) fn notice(text: &str) -> ServerNotification {
    let params = Map::from_iter([("data".to_owned(), json!(text))]);
    ServerNotification { method: "notifications/message".to_owned(), params }
}

#[async_trait]
impl ToolServerConnection for TestProvider {
    fn manifest(&self) -> Arc<ToolManifest> {
        Arc::clone(&self.manifest.lock().unwrap())
    }

    async fn invoke(
        &self,
        _permit: Permit,
        invocation: ToolInvocation,
        context: &CallContext<'_>,
    ) -> Result<ToolOutput, KernelError> {
        for text in invocation.arguments["texts"].as_array().into_iter().flatten() {
            context.notice(notice(text.as_str().unwrap_or_default())).await;
        }
        Ok(ToolOutput::value(json!({"wants_progress": context.wants_progress()})))
    }

    fn resources(&self) -> Option<&dyn ResourceProvider> {
        Some(self)
    }
}

#[async_trait]
impl ResourceProvider for TestProvider {
    async fn open(&self, context: SessionContext) -> Result<Offer, KernelError> {
        *self.session_context.lock().unwrap() = Some(context);
        Ok(Offer::default())
    }

    async fn close(&self, session_id: &str) {
        self.journal.note(format!("close {session_id}"));
    }

    async fn list(
        &self,
        _session: &Session,
        kind: ListKind,
    ) -> Result<Arc<Vec<Value>>, KernelError> {
        Ok(Arc::new(vec![json!(format!("{kind:?}"))]))
    }

    async fn read(
        &self,
        permit: Permit,
        reading: Reading,
        context: &CallContext<'_>,
    ) -> Result<Value, KernelError> {
        assert_eq!(permit.request_id(), reading.request_id, "the permit is for this read");
        self.journal.note(format!("run {}", reading.kind.name()));
        let uri = reading.params.get("uri").and_then(Value::as_str).unwrap_or_default();
        match uri {
            "test://missing" => {
                let (message, data) = ("not found".to_owned(), json!({"uri": uri, "secret": "s"}));
                Err(KernelError::Answered { code: -32002, message, data: Some(Box::new(data)) })
            }
            "test://gone" => {
                context.not_sent();
                Err(KernelError::ToolServerError("no connection".to_owned()))
            }
            "test://lost" => Err(KernelError::Incomplete("the server ended".to_owned())),
            "test://broken" => Err(KernelError::ToolServerError("no disk".to_owned())),
            "test://asks" => {
                let question = Question { kind: OperationKind::ListRoots, params: json!({}) };
                let answer = context.ask(question).await;
                Ok(json!({"answer": answer.unwrap_or_default()}))
            }
            _ if reading.kind == ReadKind::Resource => Ok(json!({"contents": [{"text": uri}]})),
            _ => Ok(json!({})),
        }
    }

    async fn tell(
        &self,
        _session: &Session,
        notification: ClientNotification,
    ) -> Result<(), KernelError> {
        self.journal.note(format!("{notification:?}"));
        Ok(())
    }
}
