//! Agents of the official SDKs, which tell where they listen.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::suites::bounded;

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running agent, which ends when dropped.
pub(super) struct Agent {
    child: Child,
    url: String,
}

impl Agent {
    /// Starts it, and waits for its only line: `{"url": ...}`.
    pub(super) fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.process_group(0).spawn().context("cannot run the agent")?;
        let stdout = child.stdout.take();
        let mut agent = Self { child, url: String::new() };
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.into_iter().flat_map(|it| BufReader::new(it).lines()) {
                let _ = sender.send(line);
            }
        });
        let line = lines.recv_timeout(PATIENCE).context("the agent does not listen")??;
        let line: Value = serde_json::from_str(&line).context("the agent's first line")?;
        let url = line.get("url").and_then(Value::as_str);
        url.context("no url in the agent's first line")?.clone_into(&mut agent.url);
        Ok(agent)
    }

    /// Where it listens.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        bounded::signal("KILL", &format!("-{}", self.child.id()));
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::Agent;

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    #[test]
    fn an_agent_tells_where_it_listens() {
        let agent = Agent::start(shell("echo '{\"url\": \"http://a\"}'; sleep 600")).unwrap();
        assert_eq!(agent.url(), "http://a");
        for line in ["true", "echo a", "echo '{}'; sleep 600"] {
            assert!(Agent::start(shell(line)).is_err(), "{line}");
        }
    }
}
