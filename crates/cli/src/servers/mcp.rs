//! MCP servers that are started as child processes.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use async_trait::async_trait;
use chio_core::crypto::{Keypair, PublicKey};
use chio_kernel::ToolServerConnection;
use chio_mcp_adapter::{McpError, McpServer, McpServerOptions, Sharing};
use chio_yaml::{Key, Section};
use parking_lot::Mutex;
use tracing::instrument::WithSubscriber as _;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::FormatFields as _;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use super::{
    Connection, Paths, ServerContext, ServerKind, ToolServer, required, texts, texts_by_name,
};
use crate::health::Check;
use crate::{program, server_name, text};

/// How many lines of a server that does not start are repeated.
const MOST_LINES: usize = 5;

pub(super) const KIND: ServerKind = ServerKind {
    keys: &[
        Key::new(
            "command",
            "a list of texts",
            "required",
            "the program that speaks MCP, and its arguments",
        ),
        Key::new("env", "a map of texts", "{}", "what is added to its environment"),
        Key::new("pass_env", "a list of names", "[]", "variables of ours that it sees as well"),
        Key::new("folder", "a folder", "that of the file", "where it works"),
        Key::new("shared", "true or false", "false", "whether all sessions share one child"),
        Key::new(
            "late_messages",
            "true or false",
            "true",
            "whether a shared child may speak of a call after its answer: then for 10 seconds what \
             names no call reaches no other session",
        ),
        Key::new(
            "start_timeout",
            "a time such as `5m`",
            "2m",
            "how long it may take to start; its command may have to fetch it first",
        ),
    ],
    is: |_| true,
    read: |section, paths| Some(Arc::new(read(section, paths)?)),
};

/// How an MCP server is started.
#[derive(Debug, Clone, Default)]
pub(crate) struct McpCommand {
    /// Its name in grants, calls and receipts.
    pub(crate) id: String,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// What is added to the environment.
    pub(crate) env: BTreeMap<String, String>,
    /// The variables of our environment that it sees besides the usual ones.
    pub(crate) pass_env: Vec<String>,
    /// The folder that it works in; ours when absent.
    pub(crate) folder: Option<PathBuf>,
    /// Which sessions share a child.
    pub(crate) sharing: Sharing,
    /// Whether a shared child says nothing of a call after its answer.
    pub(crate) never_late: bool,
    /// How long it may take to start, where that is not the usual time.
    pub(crate) start_timeout: Option<Duration>,
}

impl McpCommand {
    fn options(&self, public_key: PublicKey) -> Result<McpServerOptions> {
        let mut options = McpServerOptions::new(&self.id, self.command.clone(), public_key);
        options.env = self.env.clone();
        for name in &self.pass_env {
            let value = env::var(name).map_err(|error| {
                anyhow!("the server `{}` is to see the variable `{name}`: {error}", self.id)
            })?;
            options.env.insert(name.clone(), value);
        }
        options.cwd = self.folder.clone();
        options.sharing = self.sharing;
        let limits = &mut options.limits;
        limits.initialize = self.start_timeout.unwrap_or(limits.initialize);
        if self.never_late {
            limits.late = Duration::ZERO;
        }
        Ok(options)
    }

    async fn connect(&self, options: McpServerOptions) -> Result<McpServer> {
        let started = McpServer::start(options).await;
        started.map_err(|error| {
            anyhow!("the server `{}` is not there: {}", self.id, with_hint(&error))
        })
    }
}

#[async_trait]
impl ToolServer for McpCommand {
    fn id(&self) -> &str {
        &self.id
    }

    async fn start(&self, context: ServerContext) -> Result<Connection> {
        let folder = self.folder.as_deref().unwrap_or(Path::new(""));
        context.own.serves_in(&self.id, folder);
        // Some servers take relative paths for paths in a folder that they are told to serve, or
        // have it at another place.
        let arguments = self.command.iter().skip(1);
        for value in arguments.flat_map(|argument| argument.split(['=', ':', ','])) {
            let named = folder.join(value);
            if !value.is_empty() && named.is_dir() {
                context.own.serves_in(&self.id, &named);
            }
        }
        let mut options = self.options(context.public_key)?;
        options.client = context.client;
        options.limits.stop = context.stop.unwrap_or(options.limits.stop);
        Ok(Box::new(self.connect(options).await?))
    }

    async fn check(&self) -> Check {
        let what = format!("server {}", self.id);
        let name = self.command.first().map(String::as_str).unwrap_or_default();
        if let Some(folder) = &self.folder
            && !folder.is_dir()
        {
            let found = format!("there is no folder {} for it to work in", folder.display());
            return Check::wrong(what, found).with_advice("make it, or name another with `folder`");
        }
        // A program with a folder in its name is looked for where the server works.
        let path = match &self.folder {
            Some(folder) if name.contains('/') => folder.join(name).display().to_string(),
            _ => name.to_owned(),
        };
        if program::on_path(&path).is_none() {
            let to_do = "install it, or name it with its whole path in `command`";
            return Check::wrong(what, format!("`{name}` is not found")).with_advice(to_do);
        }
        let said = Said::default();
        let log = tracing_subscriber::registry().with(said.clone());
        let connect =
            async { self.connect(self.options(Keypair::generate().public_key().clone())?).await };
        let error = match connect.with_subscriber(log).await {
            Ok(server) => {
                let manifest = server.manifest();
                let tools = text::count(manifest.tools.len(), "tool");
                server.stop().await;
                let found = format!("{} {} answers, {tools}", manifest.name, manifest.version);
                return Check::fine(what, found);
            }
            Err(error) => format!("{error:#}"),
        };
        let lines = said.0.lock();
        // How it ended is in the error already.
        let own = format!("{}: ", self.id);
        let lines = lines.iter().map(|line| line.strip_prefix(&own).unwrap_or(line));
        let lines: Vec<&str> = lines.filter(|line| !error.contains(line)).collect();
        let found = match lines.as_slice() {
            [] => error,
            lines => format!("{error} It said: {}", lines.join(" | ")),
        };
        Check::wrong(what, found).with_advice("run its command by hand to see more")
    }
}

/// The first lines that are logged while a server starts.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Said {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut lines = self.0.lock();
        if lines.len() < MOST_LINES {
            let mut line = String::new();
            // Writing to memory does not fail.
            let _ = DefaultFields::new().format_fields(Writer::new(&mut line), event);
            lines.push(line);
        }
    }
}

/// What went wrong, and what to do.
fn with_hint(error: &McpError) -> String {
    let hint = match error {
        McpError::NotStarted { .. } => "is it installed, and on the PATH?",
        McpError::Silent { .. } => {
            "does it need longer (--start-timeout, or `start_timeout` in chio.yaml), and does it speak \
             MCP on standard input and output?"
        }
        McpError::Unexpected { .. } | McpError::Ended(_) => {
            "is the command an MCP server that speaks on standard input and output?"
        }
        _ => return error.to_string(),
    };
    format!("{error}; {hint}")
}

fn read(section: &Section<'_>, paths: &Paths<'_>) -> Option<McpCommand> {
    let id = required(section, "id", "a name")?;
    if let Err(expected) = server_name::check(id.text) {
        section.problem("id", &expected);
        return None;
    }
    let command = texts(section, "command");
    let env = texts_by_name(section, "env").into_iter().collect();
    let pass_env = texts(section, "pass_env");
    let folder = section.text("folder");
    let folder = folder.map_or(paths.folder.to_owned(), |it| paths.folder.join(it.text));
    let sharing = if section.flag("shared", false) { Sharing::Shared } else { Sharing::PerSession };
    if !section.has("command") {
        section.problem("command", "expected the command that starts the server");
    }
    if command.is_empty() {
        return None;
    }
    // An empty path is where we are.
    let folder = Some(folder).filter(|folder| !folder.as_os_str().is_empty());
    let start_timeout = section.duration("start_timeout");
    let never_late = !section.flag("late_messages", true);
    let id = id.text.to_owned();
    Some(McpCommand { id, command, env, pass_env, folder, sharing, never_late, start_timeout })
}
