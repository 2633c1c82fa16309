//! How MCP is served, as options say it.

use std::time::Duration;

use chio_mcp_edge::McpOptions;

use crate::duration;

/// How MCP is served.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct EdgeArgs {
    /// A version of MCP that is spoken; can be repeated [default: all that are known]
    #[arg(long, value_name = "VERSION")]
    pub(crate) protocol_version: Vec<String>,
    /// How many sessions there may be [default: 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_sessions: Option<u32>,
    /// Close streams after this time, so that clients come back
    #[arg(long, value_name = "TIME", value_parser = duration::parse_fine)]
    pub(crate) rotate_streams: Option<Duration>,
    /// Let the user of the client approve calls that need it, where the client can ask
    #[arg(long)]
    pub(crate) ask_user: bool,
}

impl EdgeArgs {
    /// The options of a service for these servers.
    pub(crate) fn options(&self, servers: Vec<String>) -> McpOptions {
        let mut options = McpOptions::new(servers);
        if !self.protocol_version.is_empty() {
            options.versions.clone_from(&self.protocol_version);
        }
        if let Some(most) = self.max_sessions.and_then(|most| usize::try_from(most).ok()) {
            limit_sessions(&mut options, most);
        }
        options.rotate_streams = self.rotate_streams;
        options
    }
}

/// Lets there be so many sessions, whoever has them.
pub(crate) fn limit_sessions(options: &mut McpOptions, most: usize) {
    options.limits.sessions = most;
    options.limits.sessions_per_identity = most;
}
