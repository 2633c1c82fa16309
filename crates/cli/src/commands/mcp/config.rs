//! `chio mcp config`: what a client has to be told to start a server through Chio.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::edge_args::VersionArgs;
use crate::io::Io;
use crate::policies::is_built_in;
use crate::store_args::DEFAULT_FOLDER;
use crate::{program, server_name};

const HELP: &str = "\
Prints the configuration of an MCP client that starts COMMAND through `chio mcp serve`, with this
program, the data directory and a policy file by their whole paths, because clients start in
folders of their own. Where the configuration belongs is told on standard error; a client that has
other servers already gets the member that stands inside.

Examples:
  chio mcp config --client claude-desktop -- npx -y @modelcontextprotocol/server-filesystem ~/work
  chio mcp config --client vscode --policy policy.yaml -- uvx mcp-server-git > .vscode/mcp.json";

/// Print the configuration of a client that starts a server through Chio
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Whose configuration
    #[arg(long, value_enum)]
    client: Client,
    /// What the client calls the server [default: by the command]
    #[arg(long, value_parser = server_name::check)]
    name: Option<String>,
    /// The data directory
    #[arg(long, value_name = "DIR", default_value = DEFAULT_FOLDER)]
    data: PathBuf,
    /// The policy that judges calls: a file, or a built-in one [default: default]
    #[arg(long, value_name = "FILE|NAME")]
    policy: Option<String>,
    #[command(flatten)]
    version: VersionArgs,
    /// The command that starts the server, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// A client whose configuration is known.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Client {
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
    Zed,
}

impl Client {
    /// The configuration of one server.
    fn document(self, name: &str, command: &str, args: &[String]) -> Value {
        let server = json!({"command": command, "args": args});
        match self {
            Self::ClaudeDesktop | Self::Cursor => json!({"mcpServers": {name: server}}),
            Self::VsCode => {
                let server = json!({"type": "stdio", "command": command, "args": args});
                json!({"servers": {name: server}})
            }
            Self::Zed => {
                let server = json!({"command": command, "args": args, "env": {}});
                json!({"context_servers": {name: server}})
            }
        }
    }

    /// Where it belongs.
    const fn file(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => {
                "claude_desktop_config.json, in ~/Library/Application Support/Claude (macOS), \
                 %APPDATA%\\Claude (Windows) or ~/.config/Claude (Linux); then start Claude again"
            }
            Self::Cursor => ".cursor/mcp.json in the project, or ~/.cursor/mcp.json for all",
            Self::VsCode => {
                ".vscode/mcp.json in the project, or the file that `MCP: Open User Configuration` \
                 opens"
            }
            Self::Zed => "settings.json, which `zed: open settings` opens",
        }
    }
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let program = text_of(&program::path()?)?;
    let name = args.name.clone().unwrap_or_else(|| server_name::of_command(&args.command));
    let mut words = vec!["mcp".to_owned(), "serve".to_owned()];
    words.extend(["--data".to_owned(), text_of(&whole(io, &args.data)?)?]);
    if let Some(policy) = &args.policy {
        let policy = if is_built_in(policy) && !io.folder.join(policy).exists() {
            policy.clone()
        } else {
            text_of(&whole(io, Path::new(policy))?)?
        };
        words.extend(["--policy".to_owned(), policy]);
    }
    for version in args.version.named() {
        words.extend(["--protocol-version".to_owned(), version.clone()]);
    }
    if args.name.is_some() {
        words.extend(["--server-id".to_owned(), name.clone()]);
    }
    words.push("--".to_owned());
    words.extend(args.command.iter().cloned());
    io.json(&args.client.document(&name, &program, &words))?;
    io.complain("belongs into", args.client.file());
    Ok(())
}

/// A path from the root on.
fn whole(io: &Io<'_>, path: &Path) -> Result<PathBuf> {
    let path = io.folder.join(path);
    std::path::absolute(&path).with_context(|| format!("cannot tell where {} is", path.display()))
}

fn text_of(path: &Path) -> Result<String> {
    let text = path.to_str().context("expected a path of Unicode letters, found another")?;
    Ok(text.to_owned())
}
