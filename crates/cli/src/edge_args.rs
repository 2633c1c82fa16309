//! Settings of the MCP edge, as options of the command line.

use std::time::Duration;

use anyhow::{Result, bail};
use chio_edge::{SettingValue, Settings};
use chio_mcp_edge::{EDGE, SUPPORTED};
use clap::builder::PossibleValuesParser;

use crate::duration;
use crate::runtime::EdgeConfig;

/// Which versions of MCP are spoken.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct VersionArgs {
    /// A version of MCP that is spoken, or several with commas; can be repeated [default: all of
    /// them]
    #[arg(long, value_name = "VERSION", value_delimiter = ',', value_parser = versions())]
    protocol_version: Vec<String>,
}

fn versions() -> PossibleValuesParser {
    PossibleValuesParser::new(SUPPORTED)
}

impl VersionArgs {
    /// The versions that were named.
    pub(crate) fn named(&self) -> &[String] {
        &self.protocol_version
    }

    /// These settings of the edge, with the versions that were named.
    pub(crate) fn within(&self, settings: Settings) -> Settings {
        let named = Some(self.protocol_version.clone()).filter(|named| !named.is_empty());
        settings.with("versions", named.map(SettingValue::Texts))
    }

    /// Sets the versions that were named for MCP, which has to be among these edges.
    pub(crate) fn apply(&self, edges: &mut [EdgeConfig]) -> Result<()> {
        match edges.iter_mut().find(|edge| edge.kind.name == EDGE.name) {
            Some(edge) => edge.settings = self.within(std::mem::take(&mut edge.settings)),
            None if self.protocol_version.is_empty() => {}
            None => bail!("expected MCP among the edges with --protocol-version, found others"),
        }
        Ok(())
    }
}

/// How MCP is served.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct EdgeArgs {
    #[command(flatten)]
    version: VersionArgs,
    /// How many sessions there may be [default: 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_sessions: Option<u32>,
    /// How long a session lives that no client uses [default: 15m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_fine)]
    session_idle: Option<Duration>,
    /// How many requests a caller may send in a minute [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// How long a call waits for an approval before its client is told how to ask again
    /// [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_fine)]
    approval_wait: Option<Duration>,
    /// Close streams after this time, so that clients come back
    #[arg(long, value_name = "TIME", value_parser = duration::parse_fine)]
    rotate_streams: Option<Duration>,
}

impl EdgeArgs {
    /// The settings of the edge.
    pub(crate) fn settings(&self) -> Settings {
        let number = |value: Option<u32>| value.map(|value| SettingValue::Number(value.into()));
        let duration = |value: Option<Duration>| value.map(SettingValue::Duration);
        self.version
            .within(Settings::default())
            .with("max_sessions", number(self.max_sessions))
            .with("session_idle", duration(self.session_idle))
            .with("rate", number(self.rate))
            .with("approval_wait", duration(self.approval_wait))
            .with("rotate_streams", duration(self.rotate_streams))
    }
}
