//! Whether a server can be started, and says what it has.

use std::sync::{Arc, Mutex, PoisonError};

use chio_core::crypto::Keypair;
use chio_cross_protocol::Log;
use chio_kernel::ToolServerConnection;

use super::Check;
use crate::a2a_agent::A2aAgent;
use crate::program;
use crate::servers::{McpCommand, ToolServer};
use crate::text;

/// How many lines of a server that does not start are repeated.
const MOST_LINES: usize = 5;

/// Looks at one server.
pub(super) async fn check(server: &ToolServer) -> Check {
    let what = format!("server {}", server.id());
    match server {
        ToolServer::Demo { .. } => Check::fine(what, "the demo tools, which are built in"),
        ToolServer::Mcp(command) => mcp(what, command).await,
        ToolServer::A2a(agent) => a2a(what, agent).await,
    }
}

async fn a2a(what: String, agent: &A2aAgent) -> Check {
    let key = Keypair::generate().public_key().clone();
    match agent.clone().connect(key).await {
        Ok(agent) => {
            let manifest = agent.manifest();
            let skills = text::count(manifest.tools.len(), "skill");
            Check::fine(what, format!("{} {} answers, {skills}", manifest.name, manifest.version))
        }
        Err(error) => Check::wrong(what, format!("{error:#}")).so("is it running, and reachable?"),
    }
}

async fn mcp(what: String, command: &McpCommand) -> Check {
    let name = command.command.first().map(String::as_str).unwrap_or_default();
    if let Some(folder) = &command.folder
        && !folder.is_dir()
    {
        let found = format!("there is no folder {} for it to work in", folder.display());
        return Check::wrong(what, found).so("make it, or name another with `folder`");
    }
    // A program with a folder in its name is looked for where the server works.
    let path = match &command.folder {
        Some(folder) if name.contains('/') => folder.join(name).display().to_string(),
        _ => name.to_owned(),
    };
    if program::on_path(&path).is_none() {
        let to_do = "install it, or name it with its whole path in `command`";
        return Check::wrong(what, format!("`{name}` is not found")).so(to_do);
    }
    let said = Arc::<Mutex<Vec<String>>>::default();
    let kept = Arc::clone(&said);
    let log = Log::new(move |line| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST_LINES {
            kept.push(line.to_owned());
        }
    });
    let key = Keypair::generate().public_key().clone();
    match command.clone().start(key, log).await {
        Ok(server) => {
            let manifest = server.manifest();
            let tools = text::count(manifest.tools.len(), "tool");
            server.stop().await;
            Check::fine(what, format!("{} {} answers, {tools}", manifest.name, manifest.version))
        }
        Err(error) => {
            let found = format!("{error:#}");
            let said = said.lock().unwrap_or_else(PoisonError::into_inner);
            // What became of it is told already.
            let own = format!("{}: ", command.id);
            let said = said.iter().map(|line| line.strip_prefix(&own).unwrap_or(line));
            let said: Vec<&str> = said.filter(|line| !found.contains(line)).collect();
            let to_do = "run its command by hand to see more";
            match said.as_slice() {
                [] => Check::wrong(what, found).so(to_do),
                said => {
                    Check::wrong(what, format!("{found} It said: {}", said.join(" | "))).so(to_do)
                }
            }
        }
    }
}
