//! One life of a child: from its first exchange to its end.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;

use chio_core::protocol::DiscoveryProtocol;
use chio_core::text::members;
use chio_kernel::{CallContext, ListKind, Offer, ToolInvocation};
use parking_lot::RwLock;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::call;
use crate::conversation::Conversation;
use crate::error::McpError;
use crate::manifest::{self, Manifests};
use crate::options::McpServerOptions;
use crate::outside::{self, ServedSessions};
use crate::stdio::{self, Link, harmless};
use crate::{list, wire};

/// What a child is started for.
pub(crate) struct ChildConfig {
    pub(crate) settings: Arc<McpServerOptions>,
    pub(crate) manifests: Arc<Manifests>,
    pub(crate) sessions: ServedSessions,
}

/// A child that has introduced itself.
pub(crate) struct Child {
    config: Arc<ChildConfig>,
    pub(crate) conversation: Arc<Conversation>,
    pub(crate) started_at: Instant,
    pub(crate) offer: Offer,
    /// Tools that run only as tasks.
    task_tools: RwLock<HashSet<String>>,
}

impl Child {
    /// Starts a child and learns what it offers.
    ///
    /// # Errors
    /// When it does not start, or does not introduce itself.
    pub(crate) async fn start(config: &Arc<ChildConfig>) -> Result<(Arc<Self>, Link), McpError> {
        let settings = &config.settings;
        let (conversation, outside) = Conversation::new(Arc::clone(settings));
        let link = stdio::open(&conversation)?;
        // A process that is gone is not spoken to, and its end is told.
        tokio::select! {
            audience = config.sessions.audience(settings.sharing) => conversation.address(audience),
            () = conversation.over().cancelled() => {}
        }
        let introduced = introduce(&conversation).await?;
        let offer = offer(&introduced)?;
        if config.sessions.session_id().is_none() {
            config.manifests.describe(introduced.get("serverInfo").unwrap_or(&Value::Null));
        }
        let child = Arc::new(Self {
            config: Arc::clone(config),
            conversation,
            started_at: Instant::now(),
            offer,
            task_tools: RwLock::default(),
        });
        child.list_tools().await?;
        tokio::spawn(outside::forward(Arc::clone(config), Arc::clone(&child), outside));
        tokio::spawn(outside::follow(Arc::clone(config), Arc::clone(&child)));
        Ok((child, link))
    }

    /// Brings the manifest up to what the child offers now.
    ///
    /// # Errors
    /// When it does not say.
    pub(crate) async fn list_tools(&self) -> Result<(), McpError> {
        let entries = self.list(ListKind::Tools).await?;
        let ChildConfig { settings, manifests, sessions } = &*self.config;
        let (tools, mut problems) = manifest::tools(&entries, &manifests.current());
        for entry in entries.iter() {
            let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
            let told = list::repairs(entry).collect::<Vec<_>>().join("; ");
            if !told.is_empty() {
                problems
                    .push(format!("the input schema of the tool `{name}` is put right: {told}"));
            }
        }
        for problem in manifests.not_told(problems) {
            settings.note(harmless(problem.as_bytes()));
        }
        let task_tools = entries.iter().filter_map(task_tool).collect();
        *self.task_tools.write() = task_tools;
        manifests.set(sessions.session_id(), tools);
        Ok(())
    }

    /// All entries of one kind.
    ///
    /// # Errors
    /// When the child does not say.
    pub(crate) async fn list(&self, kind: ListKind) -> Result<Arc<Vec<Value>>, McpError> {
        list::entries(&self.conversation, &self.offer.capabilities, kind).await
    }

    /// Sends a client's notification that is no part of MCP.
    ///
    /// # Errors
    /// When the child does not read.
    pub(crate) fn inform(
        &self,
        method: &str,
        mut params: Map<String, Value>,
        meta: Map<String, Value>,
    ) -> Result<Value, McpError> {
        params.remove("_meta");
        if !meta.is_empty() {
            params.insert("_meta".to_owned(), Value::Object(meta));
        }
        if !self.conversation.notify(method, Some(&params)) {
            return Err(McpError::Deaf);
        }
        Ok(Value::Null)
    }

    /// Runs a tool.
    ///
    /// # Errors
    /// When there is no result, or an error.
    pub(crate) async fn call_tool(
        &self,
        invocation: ToolInvocation,
        call_context: &CallContext<'_>,
    ) -> Result<Value, McpError> {
        let ToolInvocation { tool_name, arguments, context, meta, .. } = invocation;
        let as_task = self.task_tools.read().contains(&tool_name);
        let mut params = Map::from_iter([("name".to_owned(), Value::String(tool_name))]);
        if !arguments.is_null() {
            params.insert("arguments".to_owned(), arguments);
        }
        let protocol = call_context.session().protocol;
        // What MCP itself calls the tool, the server knows.
        let context = context.filter(|_| protocol != DiscoveryProtocol::Mcp);
        let mut meta = members(meta.unwrap_or_default());
        if let Some(context) = context {
            meta.insert("chio".to_owned(), json!({protocol.name(): context}));
        }
        if as_task {
            call::call_as_task(&self.conversation, meta, params, call_context).await
        } else {
            call::call(&self.conversation, "tools/call", meta, params, call_context).await
        }
    }
}

/// The first exchange.
async fn introduce(conversation: &Conversation) -> Result<Value, McpError> {
    let params = json!({
        "protocolVersion": wire::VERSION,
        "capabilities": conversation.audience().announced(),
        "clientInfo": {"name": "chio", "version": env!("CARGO_PKG_VERSION")},
    });
    let (within, params) = (conversation.settings.limits.initialize, members(params));
    let introduced = tokio::select! {
        biased;
        introduced = conversation.request_within(within, "initialize", params) => introduced?,
        never = tell_progress(&conversation.settings) => match never {},
    };
    let version = introduced.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    if !wire::VERSIONS.contains(&version) {
        let found = version.chars().take(40).collect();
        return Err(McpError::Version { expected: wire::VERSION, found });
    }
    if !conversation.notify("notifications/initialized", None) {
        return Err(McpError::Deaf);
    }
    Ok(introduced)
}

/// Tells the log now and then that a child is waited for.
async fn tell_progress(settings: &McpServerOptions) -> Infallible {
    let (within, began) = (settings.limits.initialize, Instant::now());
    loop {
        tokio::time::sleep(settings.limits.progress.min(within / 4)).await;
        let (waited, within) = (began.elapsed().as_secs(), within.as_secs());
        settings.note(format_args!("it is waited for since {waited}s, at most {within}s"));
    }
}

fn offer(introduced: &Value) -> Result<Offer, McpError> {
    let Some(Value::Object(capabilities)) = introduced.get("capabilities") else {
        return Err(McpError::Unexpected { expected: "capabilities" });
    };
    let instructions = introduced.get("instructions").and_then(Value::as_str);
    Ok(Offer {
        capabilities: capabilities.clone(),
        instructions: instructions.map(str::to_owned),
        server_info: introduced.get("serverInfo").cloned(),
    })
}

/// The name of a tool that runs only as a task.
fn task_tool(entry: &Value) -> Option<String> {
    let support = entry.pointer("/execution/taskSupport").and_then(Value::as_str);
    let name = entry.get("name").and_then(Value::as_str);
    if support == Some("required") { name.map(str::to_owned) } else { None }
}
