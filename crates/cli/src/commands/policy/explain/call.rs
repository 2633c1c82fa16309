//! A call as the operator describes it on the command line.

use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use chio_core::crypto::Keypair;
use chio_core::fidelity::BridgeFidelity;
use chio_core::governance::ModelMetadata;
use chio_core::hash::sha256;
use chio_core::manifest::ToolDefinition;
use chio_core::money::MonetaryAmount;
use chio_core::protocol::DiscoveryProtocol;
use chio_core::strict::{self, StrictError};
use chio_demo::{DemoOptions, DemoServer};
use chio_kernel::{SystemClock, ToolServerConnection as _};
use chio_policy::cases::plain_tool;
use chio_policy::example::ExampleCall;
use serde_json::{Map, Value};

use crate::date;
use crate::files::{is_dash, unreadable};
use crate::io::Io;
use crate::strict_input;

/// The call to explain.
#[derive(Debug, clap::Args)]
pub(super) struct CallArgs {
    /// The tool; `SERVER/TOOL` unless --server is given
    #[arg(long, value_parser = not_blank)]
    tool: String,
    /// Its server [default: example]
    #[arg(long, value_parser = not_blank)]
    server: Option<String>,
    /// The arguments, as JSON; `-` reads them from standard input
    #[arg(long, value_name = "JSON", default_value = "{}")]
    args: String,
    /// What the tool answers, as JSON, for the guards that look at output
    #[arg(long, value_name = "JSON")]
    output: Option<String>,
    /// What the caller speaks [default: native]
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<DiscoveryProtocol>,
    /// What the tool is addressed as [default: native]
    #[arg(long, value_name = "PROTOCOL")]
    target: Option<DiscoveryProtocol>,
    /// How honestly the caller's protocol presents the tool
    #[arg(long, value_enum)]
    fidelity: Option<Fidelity>,
    /// How often the token was handed on
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=64))]
    depth: u16,
    /// What the call costs, in minor units, such as `500 USD` [default: the tool's price]
    #[arg(long, value_name = "MONEY", value_parser = money)]
    cost: Option<MonetaryAmount>,
    /// Who calls; each name is another agent [default: agent]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// When [default: now]
    #[arg(long, value_name = "TIME", value_parser = date::parse)]
    at: Option<u64>,
    /// The tool's input schema, as JSON
    #[arg(long, value_name = "JSON")]
    schema: Option<String>,
    /// Whether the tool is published as having side effects [default: false]
    #[arg(long, value_name = "true|false")]
    side_effects: Option<bool>,
    /// The model that asks, as JSON: model_id, provider, safety_tier, provenance_class
    #[arg(long, value_name = "JSON")]
    model: Option<String>,
}

/// How honestly a protocol presents a tool, as it is written on the command line.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Fidelity {
    Lossless,
    Adapted,
    Unsupported,
}

impl CallArgs {
    /// The call.
    pub(super) fn read(&self, io: &mut Io<'_>) -> Result<ExampleCall> {
        let arguments = if is_dash(self.args.as_ref()) {
            json(&io.read(self.args.as_ref())?, "JSON arguments")?
        } else {
            json(self.args.as_bytes(), "JSON arguments")?
        };
        let (server, tool) = self.names()?;
        let mut call = ExampleCall::new(tool, arguments).at_depth(usize::from(self.depth));
        call.now = self.at.unwrap_or(io.now);
        call.server_id = server.map_or(call.server_id, str::to_owned);
        call.session.protocol = self.protocol.unwrap_or(call.session.protocol);
        call.target = self.target.unwrap_or(call.target);
        let agent = self.agent.as_deref().unwrap_or("agent");
        call.token.subject = Keypair::from_seed(&sha256(agent.as_bytes())).public_key().clone();
        call.fidelity = self.fidelity.map(Fidelity::value).or(call.fidelity);
        let output = self.output.as_ref();
        call.output = output.map(|it| json(it.as_bytes(), "JSON output")).transpose()?;
        if let Some(model) = &self.model {
            let read = strict_input::from_slice::<ModelMetadata>(model.as_bytes());
            call.model = Some(read.map_err(|error| not_run("a model", &error))?);
        }
        call.tool = self.published(&call)?;
        let fixed = || call.tool.as_ref()?.pricing.as_ref()?.fixed_price().cloned();
        call.cost = self.cost.clone().or_else(fixed);
        Ok(call)
    }

    /// The server, where one is named, and the tool.
    fn names(&self) -> Result<(Option<&str>, &str)> {
        let (server, tool) = match (&self.server, self.tool.split_once('/')) {
            (None, Some((server, tool))) => (Some(server), tool),
            (server, _) => (server.as_deref(), self.tool.as_str()),
        };
        if tool.trim().is_empty() || server.is_some_and(|server| server.trim().is_empty()) {
            bail!("--tool: expected TOOL or SERVER/TOOL, found a blank name");
        }
        Ok((server, tool))
    }

    /// The tool as its server publishes it: as the command line says, else as the demo server does.
    fn published(&self, call: &ExampleCall) -> Result<Option<ToolDefinition>> {
        let known = demo_tool(call)?;
        if self.schema.is_none() && self.side_effects.is_none() {
            return Ok(known);
        }
        let unknown = || plain_tool(&call.tool_name, "as the command line says", Map::new());
        let mut tool = known.unwrap_or_else(unknown);
        if let Some(schema) = &self.schema {
            let read = strict::from_slice(schema.as_bytes());
            tool.input_schema = read.map_err(|error| not_run("a JSON Schema", &error))?;
        }
        tool.has_side_effects = self.side_effects.unwrap_or(tool.has_side_effects);
        Ok(Some(tool))
    }
}

impl Fidelity {
    fn value(self) -> BridgeFidelity {
        let as_said = || "as the command line says".to_owned();
        match self {
            Self::Lossless => BridgeFidelity::Lossless,
            Self::Adapted => BridgeFidelity::Adapted { caveats: vec![as_said()] },
            Self::Unsupported => BridgeFidelity::Unsupported { reason: as_said() },
        }
    }
}

fn json(text: &[u8], what: &str) -> Result<Value> {
    strict::from_slice(text).map_err(|error| not_run(what, &error))
}

/// A flag that is not understood: there is no call to decide about.
fn not_run(what: &str, error: &StrictError) -> anyhow::Error {
    anyhow!("{}", unreadable(what, error))
}

/// The tool as the demo server publishes it, if it is one of those.
fn demo_tool(call: &ExampleCall) -> Result<Option<ToolDefinition>> {
    if call.server_id != chio_demo::SERVER_ID {
        return Ok(None);
    }
    let server = DemoServer::new(DemoOptions {
        public_key: call.token.issuer.clone(),
        clock: Arc::new(SystemClock::default()),
        notes: None,
    })?;
    let manifest = server.manifest();
    Ok(manifest.tools.iter().find(|tool| tool.name == call.tool_name).cloned())
}

fn not_blank(text: &str) -> Result<String, String> {
    let blank = text.trim().is_empty();
    if blank { Err("expected a name, found nothing".to_owned()) } else { Ok(text.to_owned()) }
}

fn money(text: &str) -> Result<MonetaryAmount, String> {
    MonetaryAmount::parse(text)
        .ok_or_else(|| "expected minor units and a currency, such as `500 USD`".to_owned())
}
