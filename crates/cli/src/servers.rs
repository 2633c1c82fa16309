//! The tool servers of this program, one file each. Adding one is adding a line to the list here.

mod a2a;
pub(crate) mod demo;
mod mcp;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use chio_core::crypto::PublicKey;
use chio_kernel::{ChioKernel, Clock, ToolServerConnection};
use chio_mcp_adapter::ComingClient;
use chio_policy::own::Own;
use chio_yaml::{Item, Key, NodeKind, Section};
use tokio::task::JoinSet;

pub(crate) use mcp::McpCommand;

use crate::health::Check;

/// How long a server that did not start is left alone, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A tool server that is configured.
#[async_trait]
pub(crate) trait ToolServer: fmt::Debug + Send + Sync {
    /// Its name in grants, calls and receipts.
    fn id(&self) -> &str;

    /// Starts it, and learns what it offers.
    async fn start(&self, context: ServerContext) -> Result<Connection>;

    /// What `chio doctor` says about it.
    async fn check(&self) -> Check;
}

/// A tool server that was started.
pub(crate) type Connection = Box<dyn ToolServerConnection>;

/// What a tool server is started with.
#[derive(Clone)]
pub(crate) struct ServerContext {
    /// The kernel's key, which signs for its manifest.
    pub(crate) public_key: PublicKey,
    pub(crate) clock: Arc<dyn Clock>,
    /// The client of the only session, where it is known before a server starts.
    pub(crate) client: Option<ComingClient>,
    /// How long a process may take to end, where that is not the usual time.
    pub(crate) stop: Option<Duration>,
    /// What no call may touch; a server adds its files and secrets, and where it works.
    pub(crate) own: Arc<Own>,
}

/// An entry of the list: a kind of tool server, as `servers` in chio.yaml configures it.
pub(crate) struct ServerKind {
    /// Its keys, besides `id`.
    keys: &'static [Key],
    /// Whether an entry is of this kind.
    is: fn(&Section<'_>) -> bool,
    /// Reads an entry; what is wrong with it is noted there.
    read: fn(&Section<'_>, &Paths<'_>) -> Option<Arc<dyn ToolServer>>,
}

/// Where paths of a configuration begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paths<'a> {
    /// The folder of the file.
    pub(crate) folder: &'a Path,
    /// The data directory.
    pub(crate) data: Option<&'a Path>,
}

/// Every kind of tool server; an entry is of the first that it fits.
const KINDS: &[&ServerKind] = &[&a2a::KIND, &demo::KIND, &mcp::KIND];

/// The keys of an entry of `servers`.
pub(crate) static KEYS: LazyLock<&'static [Key]> = LazyLock::new(|| {
    let id = Key::new("id", "a name", "required", "its name in grants, calls and receipts");
    let keys = KINDS.iter().flat_map(|kind| kind.keys);
    Vec::leak(std::iter::once(&id).chain(keys).copied().collect())
});

/// Reads an entry of `servers`.
pub(crate) fn read(section: &Section<'_>, paths: &Paths<'_>) -> Option<Arc<dyn ToolServer>> {
    let kind = KINDS.iter().find(|kind| (kind.is)(section))?;
    (kind.read)(section, paths)
}

/// A text that has to be there.
pub(crate) fn required<'a>(section: &Section<'a>, key: &str, what: &str) -> Option<Item<'a>> {
    section.required(key, section.text(key), &format!("expected {what} here"))
}

/// A list of texts.
pub(crate) fn texts(section: &Section<'_>, key: &str) -> Vec<String> {
    section.texts(key).iter().map(|it| it.text.to_owned()).collect()
}

/// The members of a map of texts.
fn texts_by_name(section: &Section<'_>, key: &str) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    match section.node(key).map(|node| &node.kind) {
        None => {}
        Some(NodeKind::Map(members)) => {
            for (name, value) in members {
                match &value.kind {
                    NodeKind::Text(text) => texts.push((name.text.clone(), text.clone())),
                    _ => {
                        let found = value.found();
                        let problem = format!("`{key}`: expected text (in quotes), found {found}");
                        section.problem_at(&value.place, &problem);
                    }
                }
            }
        }
        Some(_) => section.problem(key, "expected a map, written as `NAME: value`"),
    }
    texts
}

/// A server that did not start, and why.
pub(crate) type Absent = (Arc<dyn ToolServer>, anyhow::Error);

/// Starts tool servers, all at once. One that does not start does not keep the others from it.
///
/// # Errors
/// When none of them starts.
pub(crate) async fn start(
    servers: &[Arc<dyn ToolServer>],
    context: &ServerContext,
) -> Result<(Vec<Connection>, Vec<Absent>)> {
    let mut starting = JoinSet::new();
    for server in servers {
        let (server, context) = (Arc::clone(server), context.clone());
        starting.spawn(async move { (server.start(context).await, server) });
    }
    let (mut started, mut absent) = (Vec::new(), Vec::new());
    while let Some(ended) = starting.join_next().await {
        match ended.context("a server did not start")? {
            (Ok(connection), _) => started.push(connection),
            (Err(error), server) => absent.push((server, error)),
        }
    }
    if started.is_empty() && !absent.is_empty() {
        let (_, error) = absent.swap_remove(0);
        return Err(error);
    }
    Ok((started, absent))
}

/// Starts a server that is not there, after longer and longer pauses, until it is.
pub(crate) async fn start_later(
    (server, mut error): Absent,
    context: ServerContext,
    kernel: ChioKernel,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        let (id, seconds) = (server.id(), pause.as_secs());
        tracing::warn!("{error:#}; it is tried again in {seconds}s, and the others are served");
        kernel.note_absent(id, &format!("{error:#}"));
        tokio::time::sleep(pause).await;
        pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        error = match server.start(context.clone()).await {
            Ok(connection) => match kernel.register_tool_server(connection) {
                Ok(()) => return tracing::info!("server {id} is there now"),
                Err(error) => error.into(),
            },
            Err(error) => error,
        };
    }
}
