//! What a tool server may have besides tools: resources, prompts and completions; and sessions that
//! tell it whom it works for.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::receipt::OperationKind;
use serde_json::{Map, Value};

use crate::call_context::CallContext;
use crate::caller::Session;
use crate::error::KernelError;
use crate::road::Permit;
use crate::session_context::SessionContext;

/// A list that a server keeps. Entries are as the server writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// Tools.
    Tools,
    /// Resources.
    Resources,
    /// Templates of resources.
    ResourceTemplates,
    /// Prompts.
    Prompts,
}

/// A way to read what a server offers besides tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadKind {
    /// Reads a resource.
    Resource,
    /// Asks to be told of changes of a resource.
    Subscribe,
    /// Asks to be told no more.
    Unsubscribe,
    /// Gets a prompt.
    Prompt,
    /// Completes an argument of a prompt or of a template.
    Completion,
    /// Calls a method that is no part of the protocol.
    Method,
    /// Sends a notification that is no part of the protocol.
    Notification,
}

impl ReadKind {
    /// What guards and receipts call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resource => "read_resource",
            Self::Subscribe => "subscribe_resource",
            Self::Unsubscribe => "unsubscribe_resource",
            Self::Prompt => "get_prompt",
            Self::Completion => "complete",
            Self::Method => "call_method",
            Self::Notification => "send_notification",
        }
    }

    /// What its child receipt says that it is.
    pub const fn operation(self) -> OperationKind {
        match self {
            Self::Resource | Self::Subscribe | Self::Unsubscribe => OperationKind::ReadResource,
            Self::Prompt => OperationKind::GetPrompt,
            Self::Completion => OperationKind::Complete,
            Self::Method | Self::Notification => OperationKind::ToolCall,
        }
    }

    /// Whether it may change anything: what it does is known to the server alone.
    pub const fn has_side_effects(self) -> bool {
        matches!(self, Self::Method | Self::Notification)
    }
}

/// A read that a server is asked for.
#[derive(Debug)]
pub struct Reading {
    /// The kernel's own name of it.
    pub request_id: String,
    /// The kind of read.
    pub kind: ReadKind,
    /// The params: `uri`, or `name` and `arguments`, or `ref`, `argument` and `context`, or `method`
    /// and `params`.
    pub params: Map<String, Value>,
    /// What the client adds to its request for the server, such as `traceparent`.
    pub meta: Option<Value>,
}

/// What a server says about itself to a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offer {
    /// What it can do, as it says itself.
    pub capabilities: Map<String, Value>,
    /// How to use it.
    pub instructions: Option<String>,
    /// Its name and version, as it writes them.
    pub server_info: Option<Value>,
}

/// A notice of the client to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientNotification {
    /// From which level on it wants to read the server's log.
    LogLevel(String),
    /// Its roots have changed.
    RootsChanged,
}

/// What a server has besides tools. Every method is told the session that it is for: what belongs
/// to one session never reaches another.
#[async_trait]
pub trait ResourceProvider: Send + Sync {
    /// Begins a session. Through the context, the server reaches the client outside of any call.
    ///
    /// # Errors
    /// [`KernelError::ToolServerError`] when the server cannot be had.
    async fn open(&self, context: SessionContext) -> Result<Offer, KernelError>;

    /// A session has ended, and with it all that was kept for it.
    async fn close(&self, session_id: &str);

    /// All entries of one kind, all pages of them.
    ///
    /// # Errors
    /// [`KernelError::ToolServerError`] when the server does not say.
    async fn list(&self, session: &Session, kind: ListKind)
    -> Result<Arc<Vec<Value>>, KernelError>;

    /// Looks something up. The permit is the kernel's word that this may be.
    ///
    /// # Errors
    /// [`KernelError::Answered`] with the server's own error, or [`KernelError::ToolServerError`].
    async fn read(
        &self,
        permit: Permit,
        reading: Reading,
        context: &CallContext<'_>,
    ) -> Result<Value, KernelError>;

    /// Sends the server a notice.
    ///
    /// # Errors
    /// As [`Self::read`].
    async fn tell(
        &self,
        session: &Session,
        notification: ClientNotification,
    ) -> Result<(), KernelError>;
}
