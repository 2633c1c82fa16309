//! How MCP is served, as options say it.

use std::time::Duration;

use chio_mcp_edge::{McpOptions, Rate};

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
    /// How long a session lives that nobody uses [default: 15m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_fine)]
    pub(crate) session_idle: Option<Duration>,
    /// How many requests a caller may send in a minute [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,
    /// Close streams after this time, so that clients come back
    #[arg(long, value_name = "TIME", value_parser = duration::parse_fine)]
    pub(crate) rotate_streams: Option<Duration>,
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
        if let Some(idle) = self.session_idle {
            options.limits.idle = idle;
        }
        options.limits.rate = self.rate.map(a_minute);
        options.rotate_streams = self.rotate_streams;
        options
    }
}

/// So many requests in a minute.
pub(crate) const fn a_minute(requests: u32) -> Rate {
    Rate { requests, window: Duration::from_secs(60) }
}

/// Lets there be so many sessions, whoever has them.
pub(crate) fn limit_sessions(options: &mut McpOptions, most: usize) {
    options.limits.sessions = most;
    options.limits.sessions_per_identity = most;
}
