//! What an MCP server has besides tools, and its sessions.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::text::members;
use chio_kernel::{
    CallContext, ClientNotification, KernelError, ListKind, Offer, Permit, ReadKind, Reading,
    ResourceProvider, Session, SessionContext,
};
use chio_net::jsonrpc::RpcError;
use serde_json::{Map, Value, json};

use crate::call;
use crate::child_slot::{ChildSlot, log_level};
use crate::error::McpError;
use crate::options::Sharing;
use crate::server::{McpServer, Opened};

#[async_trait]
impl ResourceProvider for McpServer {
    async fn open(&self, context: SessionContext) -> Result<Offer, KernelError> {
        let session_id = context.session().id.clone();
        self.close(&session_id).await;
        let (opened, child) = match self.sharing() {
            Sharing::Single if self.shared().take(&context) => {
                let slot = Arc::clone(self.shared());
                let child = slot.child().await?;
                (Opened::Own(slot), child)
            }
            Sharing::PerSession | Sharing::Single => {
                if self.sharing() == Sharing::Single && self.shared().session().is_none() {
                    self.shared().rest().await;
                }
                let slot = Arc::new(self.shared().for_session(context));
                let child = slot.child().await?;
                (Opened::Own(slot), child)
            }
            Sharing::Shared => (Opened::Shared(context), self.shared().child().await?),
        };
        self.sessions().insert(session_id, opened);
        Ok(child.offer.clone())
    }

    async fn close(&self, session_id: &str) {
        match self.opened(session_id) {
            Some(Opened::Own(slot)) => {
                slot.close().await;
                // Only now: the end of the whole server waits for what is there.
                self.forget(session_id, &slot);
            }
            Some(Opened::Shared(_)) => {
                self.sessions().remove(session_id);
                self.unsubscribe_all(session_id).await;
            }
            None => {}
        }
    }

    async fn list(
        &self,
        session: &Session,
        kind: ListKind,
    ) -> Result<Arc<Vec<Value>>, KernelError> {
        let child = self.slot(&session.id).child().await?;
        Ok(child.list(kind).await?)
    }

    async fn read(
        &self,
        _permit: Permit,
        reading: Reading,
        context: &CallContext<'_>,
    ) -> Result<Value, KernelError> {
        let Reading { kind, mut params, meta, .. } = reading;
        context.not_sent();
        let session_id = &context.session().id;
        let slot = self.slot(session_id);
        let method = match kind {
            ReadKind::Resource => "resources/read",
            ReadKind::Prompt => "prompts/get",
            ReadKind::Completion => "completion/complete",
            ReadKind::Method | ReadKind::Notification => &foreign(&mut params)?,
            ReadKind::Subscribe => return Ok(self.subscribe(&slot, params, context).await?),
            ReadKind::Unsubscribe => return Ok(unsubscribe(&slot, params, context).await?),
        };
        let child = slot.child().await?;
        let meta = members(meta.unwrap_or_default());
        if kind == ReadKind::Notification {
            return Ok(child.inform(method, params, meta)?);
        }
        Ok(call::call(&child.conversation, method, meta, params, context).await?)
    }

    async fn tell(
        &self,
        session: &Session,
        notification: ClientNotification,
    ) -> Result<(), KernelError> {
        // SECURITY: a session does not change what a child does that others work with.
        let Some(Opened::Own(slot)) = self.opened(&session.id) else { return Ok(()) };
        let child = slot.child().await?;
        match notification {
            ClientNotification::LogLevel(level) => {
                if child.offer.capabilities.contains_key("logging") {
                    let (within, params) = (self.settings().limits.list, log_level(&level));
                    let conversation = &child.conversation;
                    conversation.request_within(within, "logging/setLevel", params).await?;
                    slot.set_log_level(&level);
                }
            }
            ClientNotification::RootsChanged => {
                let has_roots =
                    slot.session().is_some_and(|context| context.client().contains_key("roots"));
                let changed = "notifications/roots/list_changed";
                if has_roots && !child.conversation.notify(changed, None) {
                    return Err(McpError::Deaf.into());
                }
            }
        }
        Ok(())
    }
}

impl McpServer {
    /// Subscribes a session to a resource. The shared child is asked once for all sessions.
    async fn subscribe(
        &self,
        slot: &ChildSlot,
        params: Map<String, Value>,
        context: &CallContext<'_>,
    ) -> Result<Value, McpError> {
        let session_id = &context.session().id;
        let subscriber = match self.opened(session_id) {
            Some(Opened::Own(slot)) => slot.session().cloned(),
            Some(Opened::Shared(context)) => Some(context),
            None => None,
        };
        let subscriber = subscriber.ok_or(McpError::NoSession)?;
        let uri = uri(&params)?;
        let max = self.settings().limits.max_subscriptions;
        if slot.subscriptions.count(session_id) >= max {
            return Err(McpError::TooMany { what: "subscriptions", max });
        }
        let _turn = slot.subscribing.lock().await;
        let child = slot.child().await?;
        let known = slot.session().is_none() && slot.subscriptions.has(&uri);
        let answer = if known {
            json!({})
        } else {
            let (conversation, meta) = (&child.conversation, Map::new());
            call::call(conversation, "resources/subscribe", meta, params, context).await?
        };
        slot.subscriptions.add(&uri, subscriber);
        Ok(answer)
    }

    /// Ends the subscriptions of a session that worked with the shared child.
    async fn unsubscribe_all(&self, session_id: &str) {
        let shared = self.shared();
        let _turn = shared.subscribing.lock().await;
        let unwanted = shared.subscriptions.remove_session(session_id);
        let Some(child) = shared.present().await else { return };
        for uri in unwanted {
            let params = members(json!({"uri": uri}));
            child.conversation.request_blindly("resources/unsubscribe", &params);
        }
    }
}

/// Ends a session's subscription to a resource.
async fn unsubscribe(
    slot: &ChildSlot,
    params: Map<String, Value>,
    context: &CallContext<'_>,
) -> Result<Value, McpError> {
    let uri = uri(&params)?;
    let _turn = slot.subscribing.lock().await;
    let last = slot.subscriptions.remove(&uri, &context.session().id);
    let child = slot.child().await?;
    if !last {
        return Ok(json!({}));
    }
    call::call(&child.conversation, "resources/unsubscribe", Map::new(), params, context).await
}

/// Takes out the name of a method that is no part of MCP, and leaves what it is called with.
fn foreign(params: &mut Map<String, Value>) -> Result<String, McpError> {
    let Some(Value::String(method)) = params.remove("method") else {
        return Err(McpError::Unexpected { expected: "the name of a method" });
    };
    *params = members(params.remove("params").unwrap_or_default());
    Ok(method)
}

fn uri(params: &Map<String, Value>) -> Result<String, McpError> {
    let uri = params.get("uri").and_then(Value::as_str);
    let message = || "expected a `uri`, found none".to_owned();
    uri.map(str::to_owned).ok_or_else(|| McpError::Answered {
        code: RpcError::INVALID_PARAMS,
        message: message(),
        data: None,
    })
}
