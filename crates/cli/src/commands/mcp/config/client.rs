//! MCP clients: what their configuration looks like, and where it is.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::io::Io;
use crate::{json_text, text, toml_text};

/// A client whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Client {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
    Zed,
    Codex,
    Windsurf,
    Cline,
    /// Junie and the AI Assistant
    #[value(name = "jetbrains")]
    JetBrains,
}

/// Where a client keeps its configuration.
enum Place {
    /// In the project.
    Project(&'static str),
    /// In the user's home, on macOS and elsewhere.
    Home(&'static str, &'static str),
}

impl Client {
    /// The member of the configuration that has all servers.
    const fn section(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }

    const fn place(self) -> Place {
        match self {
            Self::ClaudeDesktop => Place::Home(
                "Library/Application Support/Claude/claude_desktop_config.json",
                ".config/Claude/claude_desktop_config.json",
            ),
            Self::ClaudeCode => Place::Project(".mcp.json"),
            Self::Cursor => Place::Project(".cursor/mcp.json"),
            Self::VsCode => Place::Project(".vscode/mcp.json"),
            Self::Zed => Place::Home(".config/zed/settings.json", ".config/zed/settings.json"),
            Self::Codex => Place::Home(".codex/config.toml", ".codex/config.toml"),
            Self::Windsurf => Place::Home(
                ".codeium/windsurf/mcp_config.json",
                ".codeium/windsurf/mcp_config.json",
            ),
            Self::Cline => Place::Home(
                "Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/\
                 cline_mcp_settings.json",
                ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/\
                 cline_mcp_settings.json",
            ),
            Self::JetBrains => Place::Project(".junie/mcp/mcp.json"),
        }
    }

    /// The file that has the configuration; none where the user's home is not known.
    pub(super) fn file(self, io: &Io<'_>) -> Option<PathBuf> {
        match self.place() {
            Place::Project(file) => Some(io.folder.join(file)),
            Place::Home(on_mac, elsewhere) => {
                let home = env::var_os("HOME").filter(|home| !home.is_empty())?;
                let file = if cfg!(target_os = "macos") { on_mac } else { elsewhere };
                Some(Path::new(&home).join(file))
            }
        }
    }

    /// Where the configuration belongs, for people.
    pub(super) const fn belongs(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => {
                "claude_desktop_config.json, in ~/Library/Application Support/Claude (macOS), \
                 %APPDATA%\\Claude (Windows) or ~/.config/Claude (Linux); then start Claude again"
            }
            Self::ClaudeCode => {
                ".mcp.json in the project, or `mcpServers` of ~/.claude.json for all projects"
            }
            Self::Cursor => ".cursor/mcp.json in the project, or ~/.cursor/mcp.json for all",
            Self::VsCode => {
                ".vscode/mcp.json in the project, or the file that `MCP: Open User Configuration` \
                 opens"
            }
            Self::Zed => "settings.json, which `zed: open settings` opens",
            Self::Codex => "~/.codex/config.toml",
            Self::Windsurf => "~/.codeium/windsurf/mcp_config.json; then refresh its MCP servers",
            Self::Cline => {
                "cline_mcp_settings.json, which `MCP Servers > Configure MCP Servers` opens"
            }
            Self::JetBrains => {
                ".junie/mcp/mcp.json in the project, ~/.junie/mcp/mcp.json for all; of the AI \
                 Assistant: Settings > Tools > AI Assistant > Model Context Protocol"
            }
        }
    }

    /// A server as the client has it.
    fn entry(self, server: &Value) -> Value {
        let mut entry = server.clone();
        if let Value::Object(members) = &mut entry {
            let more = match self {
                Self::VsCode | Self::ClaudeCode => Some(("type", json!("stdio"))),
                Self::Zed => Some(("env", json!({}))),
                Self::Cline => Some(("disabled", json!(false))),
                _ => None,
            };
            members.extend(more.map(|(name, value)| (name.to_owned(), value)));
        }
        entry
    }

    /// The configuration of one server and no other.
    pub(super) fn document(self, name: &str, server: &Value) -> Result<String> {
        match self {
            Self::Codex => self.written(name, server),
            _ => text::json(&json!({self.section(): {name: self.entry(server)}})),
        }
    }

    /// A server as it is written in the client's file.
    fn written(self, name: &str, server: &Value) -> Result<String> {
        if self != Self::Codex {
            return Ok(serde_json::to_string_pretty(&self.entry(server))?);
        }
        // A string and a list of strings are written in JSON as in TOML.
        let member = |name: &str| server.get(name).map(Value::to_string).unwrap_or_default();
        let (command, args, section) = (member("command"), member("args"), self.section());
        Ok(format!("[{section}.{name}]\ncommand = {command}\nargs = {args}\n"))
    }

    /// A server in the text of the client's file; none where there is none.
    pub(super) fn find<'a>(self, text: &'a str, name: &str) -> Result<Option<&'a str>, String> {
        match self {
            Self::Codex => toml_text::get(text, self.section(), name),
            _ if text.trim().is_empty() => Ok(None),
            _ => json_text::get(text, self.section(), name),
        }
    }

    /// The text of the client's file with this server.
    pub(super) fn with(self, text: &str, name: &str, server: &Value) -> Result<String> {
        let (section, written) = (self.section(), self.written(name, server)?);
        let changed = match self {
            Self::Codex => toml_text::set(text, section, name, &written),
            _ => json_text::set(text, section, name, &written),
        };
        changed.map_err(anyhow::Error::msg).context(NOT_CHANGED)
    }

    /// The same with the server that was there before, as it was written.
    pub(super) fn put_back(self, text: &str, name: &str, written: &str) -> Result<String, String> {
        match self {
            Self::Codex => toml_text::set(text, self.section(), name, written),
            _ => json_text::replace(text, self.section(), name, written),
        }
    }

    /// The text of the client's file without a server.
    pub(super) fn without(self, text: &str, name: &str) -> Result<String, String> {
        match self {
            Self::Codex => toml_text::remove(text, self.section(), name),
            _ if text.trim().is_empty() => Ok(text.to_owned()),
            _ => json_text::remove(text, self.section(), name),
        }
    }
}

/// What became of a file that is not understood.
pub(super) const NOT_CHANGED: &str = "the file is not understood and was not changed; without --write, what belongs into it is printed";
