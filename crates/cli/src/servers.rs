//! The tool servers that a kernel is started with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use chio_a2a_adapter::A2aAdapter;
use chio_core::crypto::PublicKey;
use chio_cross_protocol::Log;
use chio_demo::{DemoOptions, DemoServer, SERVER_ID};
use chio_kernel::{Clock, ToolServerConnection};
use chio_mcp_adapter::{McpError, McpServer, McpServerOptions, Sharing};
use chio_store::StoreUrl;
use tokio::task::JoinSet;

use crate::a2a_agent::A2aAgent;

/// Where the demo server keeps its notes, below the store's folder.
const NOTES: &str = "notes";

/// A tool server that is wanted.
#[derive(Debug, Clone)]
pub(crate) enum ToolServer {
    /// The demo tools.
    Demo {
        /// Where they keep their notes; in memory when absent.
        notes: Option<PathBuf>,
    },
    /// An MCP server that is started as a child.
    Mcp(McpCommand),
    /// An A2A agent somewhere.
    A2a(Box<A2aAgent>),
}

/// How an MCP server is started.
#[derive(Debug, Clone, Default)]
pub(crate) struct McpCommand {
    /// Its name in grants, calls and receipts.
    pub(crate) id: String,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// What is added to the environment.
    pub(crate) env: BTreeMap<String, String>,
    /// The folder that it works in; ours when absent.
    pub(crate) folder: Option<PathBuf>,
    /// Who works with which child.
    pub(crate) sharing: Sharing,
}

impl ToolServer {
    /// The demo tools, with their notes beside this store.
    pub(crate) fn demo(url: &StoreUrl) -> Self {
        let notes = match url {
            StoreUrl::Sqlite(folder) => Some(Path::new(folder).join(NOTES)),
            StoreUrl::Memory => None,
        };
        Self::Demo { notes }
    }

    /// Its name in grants, calls and receipts.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Demo { .. } => SERVER_ID,
            Self::Mcp(command) => &command.id,
            Self::A2a(agent) => &agent.id,
        }
    }
}

impl McpCommand {
    /// Starts it, and learns what it offers.
    pub(crate) async fn start(self, public_key: PublicKey, log: Log) -> Result<McpServer> {
        let mut options = McpServerOptions::new(&self.id, self.command, public_key);
        options.env = self.env;
        options.cwd = self.folder;
        options.sharing = self.sharing;
        options.log = Arc::new(move |line: &str| log.line(line));
        let started = McpServer::start(options).await;
        started.map_err(|error| anyhow!("the server `{}` is not there: {}", self.id, told(&error)))
    }
}

/// What went wrong, and what to do.
fn told(error: &McpError) -> String {
    let what_to_do = match error {
        McpError::NotStarted { .. } => "is it installed, and on the PATH?",
        McpError::Silent { .. } | McpError::Unexpected { .. } | McpError::Ended(_) => {
            "is the command an MCP server that speaks on standard input and output?"
        }
        _ => return error.to_string(),
    };
    format!("{error}; {what_to_do}")
}

/// The tool servers of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// Their names, in the order in which they were wanted.
    pub(crate) ids: Vec<String>,
    upstreams: Vec<McpServer>,
}

/// Servers that have started, to be registered.
type Connections = Vec<Box<dyn ToolServerConnection>>;

/// A server that has started.
enum Started {
    Mcp(McpServer),
    A2a(Box<A2aAdapter>),
}

impl Servers {
    /// Starts those that are wanted, all at once. If one does not start, none stays.
    pub(crate) async fn start(
        wanted: Vec<ToolServer>,
        public_key: &PublicKey,
        clock: &Arc<dyn Clock>,
        log: &Log,
    ) -> Result<(Self, Connections)> {
        let ids = wanted.iter().map(|server| server.id().to_owned()).collect();
        let (mut connections, mut starting) = (Connections::new(), JoinSet::new());
        for server in wanted {
            match server {
                ToolServer::Demo { notes } => {
                    let (public_key, clock) = (public_key.clone(), Arc::clone(clock));
                    let demo = DemoServer::new(DemoOptions { public_key, clock, notes });
                    let demo = demo.context("cannot keep the demo server's notes")?;
                    connections.push(Box::new(demo));
                }
                ToolServer::Mcp(command) => {
                    let (key, log) = (public_key.clone(), log.clone());
                    starting.spawn(async { command.start(key, log).await.map(Started::Mcp) });
                }
                ToolServer::A2a(agent) => {
                    let key = public_key.clone();
                    let connect = async { agent.connect(key).await };
                    starting.spawn(async { connect.await.map(|it| Started::A2a(Box::new(it))) });
                }
            }
        }
        let mut servers = Self { ids, upstreams: Vec::new() };
        let mut failed = None;
        while let Some(started) = starting.join_next().await {
            match started.context("a server did not start").and_then(|started| started) {
                Ok(Started::Mcp(server)) => {
                    connections.push(Box::new(server.clone()));
                    servers.upstreams.push(server);
                }
                Ok(Started::A2a(agent)) => connections.push(agent),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            None => Ok((servers, connections)),
            Some(error) => {
                servers.stop().await;
                Err(error)
            }
        }
    }

    /// Ends all that were started.
    pub(crate) async fn stop(&self) {
        let mut stopping = JoinSet::new();
        for server in &self.upstreams {
            let server = server.clone();
            stopping.spawn(async move { server.stop().await });
        }
        stopping.join_all().await;
    }
}
