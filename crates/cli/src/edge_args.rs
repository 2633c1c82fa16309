//! Settings of the MCP edge, as options of the command line.

use std::time::Duration;

use chio_edge::{SettingValue, Settings};

use crate::duration;

/// How MCP is served.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct EdgeArgs {
    /// A version of MCP that is spoken; can be repeated [default: all that are known]
    #[arg(long, value_name = "VERSION")]
    protocol_version: Vec<String>,
    /// How many sessions there may be [default: 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_sessions: Option<u32>,
    /// How long a session lives that no client uses [default: 15m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_fine)]
    session_idle: Option<Duration>,
    /// How many requests a caller may send in a minute [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Close streams after this time, so that clients come back
    #[arg(long, value_name = "TIME", value_parser = duration::parse_fine)]
    rotate_streams: Option<Duration>,
}

impl EdgeArgs {
    /// The settings of the edge.
    pub(crate) fn settings(&self) -> Settings {
        let number = |value: Option<u32>| value.map(|value| SettingValue::Number(value.into()));
        let duration = |value: Option<Duration>| value.map(SettingValue::Duration);
        Settings::default()
            .with("versions", Some(SettingValue::Texts(self.protocol_version.clone())))
            .with("max_sessions", number(self.max_sessions))
            .with("session_idle", duration(self.session_idle))
            .with("rate", number(self.rate))
            .with("rotate_streams", duration(self.rotate_streams))
    }
}
