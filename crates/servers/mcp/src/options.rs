//! What an MCP server can be started with.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use chio_core::crypto::PublicKey;
use chio_core::with_defaults;
use serde_json::{Map, Value};
use tokio::sync::watch;

/// Who works with which child.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Each session that is opened has its own.
    #[default]
    PerSession,
    /// All sessions have one.
    Shared,
    /// There will be one session, which makes every call: it has the child that tells what the
    /// server offers, where that was told what the session's client can do. Else that child ends
    /// before the session's begins. Some servers cannot run twice at once.
    Single,
}

/// What the client of the only session can do, as it says itself: none as long as it has not come.
pub type ComingClient = watch::Receiver<Option<Map<String, Value>>>;

/// What an MCP server is started with.
#[derive(Clone)]
pub struct McpServerOptions {
    /// Its name in grants and calls.
    pub server_id: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What is added to its environment, which else has only a few variables of ours.
    pub env: BTreeMap<String, String>,
    /// The folder that it works in; ours when absent.
    pub cwd: Option<PathBuf>,
    /// Who works with which child.
    pub sharing: Sharing,
    /// The client of the only session, which the child waits for before it is spoken to.
    pub client: Option<ComingClient>,
    /// The key in its manifest.
    pub public_key: PublicKey,
    /// How far it may go.
    pub limits: Limits,
}

impl McpServerOptions {
    /// A server with a child for each session, and nothing added to its environment.
    pub fn new(
        server_id: impl Into<String>,
        command: impl IntoIterator<Item = impl Into<String>>,
        public_key: PublicKey,
    ) -> Self {
        Self {
            server_id: server_id.into(),
            command: command.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: None,
            sharing: Sharing::default(),
            client: None,
            public_key,
            limits: Limits::default(),
        }
    }

    /// Logs a line in the server's name.
    pub(crate) fn note(&self, line: impl fmt::Display) {
        tracing::info!("{}: {line}", self.server_id);
    }
}

impl fmt::Debug for McpServerOptions {
    /// Arguments and the environment may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServerOptions")
            .field("server_id", &self.server_id)
            .field("program", &self.command.first())
            .field("sharing", &self.sharing)
            .finish_non_exhaustive()
    }
}

with_defaults! {
    /// How far a server may go.
    #[derive(Debug, Clone)]
    pub struct Limits {
        /// How many bytes a line of the server may have.
        pub max_line_bytes: usize = 16 << 20,
        /// After how many lines in a row that are no messages it is ended.
        pub max_garbage: usize = 100,
        /// How many requests to one child wait for an answer at once.
        pub max_pending: usize = 256,
        /// How many bytes wait for a child that does not read.
        pub max_queued_bytes: usize = 16 << 20,
        /// How many bytes of what a child says wait for a client that does not take it.
        pub max_held_bytes: u32 = 16 << 20,
        /// How many notifications of one call wait for its caller.
        pub max_notifications: usize = 256,
        /// How many questions of one call wait for its caller.
        pub max_questions: usize = 8,
        /// How many pages a list may have.
        pub max_pages: usize = 200,
        /// How many entries a list may have.
        pub max_entries: usize = 10_000,
        /// How many bytes the entries of a list may have.
        pub max_list_bytes: usize = 32 << 20,
        /// How many resources a session may ask to be told of.
        pub max_subscriptions: usize = 1000,
        /// How long a child may take to introduce itself: its command may have to fetch it first.
        pub initialize: Duration = Duration::from_secs(120),
        /// How often the log is told meanwhile that it is waited for.
        pub progress: Duration = Duration::from_secs(5),
        /// How long a page of a list may take.
        pub list: Duration = Duration::from_secs(30),
        /// How long a child may take to end once its input has, and again once it was told to.
        pub stop: Duration = Duration::from_secs(2),
        /// How long a child is not started again after it failed once; twice that after it failed
        /// twice.
        pub first_pause: Duration = Duration::from_millis(100),
        /// How long at most.
        pub longest_pause: Duration = Duration::from_secs(10),
        /// A child that has lived so long has not failed.
        pub settled_after: Duration = Duration::from_secs(30),
        /// How long after a call a child that sessions share may still speak of it.
        pub late: Duration = Duration::from_secs(10),
        /// How long a task's result is kept that a tool insists on.
        pub task_ttl: Duration = Duration::from_secs(600),
    }
}
