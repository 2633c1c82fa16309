//! `chio serve`: what chio.yaml says.

use std::path::PathBuf;

use anyhow::Result;

use crate::adoption::AdoptArgs;
use crate::config::{Config, DEFAULT_FILE};
use crate::edge_args::VersionArgs;
use crate::io::Io;
use crate::logging::LogArgs;
use crate::policy_args::PolicySources;
use crate::reload::Reload;
use crate::runtime::Plan;

/// How another address is chosen.
const CHOOSE: &str = "`listen: 127.0.0.1:0` takes a free port";

const HELP: &str = "\
Runs the servers, the policy and the edges of chio.yaml (`chio init` writes one) until it is told to
end (Ctrl-C), then finishes what runs. `chio doctor` tells what is wrong before. Each call is a line
on standard output, which has to be read.

The policy is taken anew when its files change. SIGHUP has chio.yaml read again: policies, approvals,
trusted_kernels and deadline are taken together; a file that is broken, or with another store, servers,
listeners or edges, is told and changes nothing.

Examples:
  chio serve
  chio serve --config agents/chio.yaml
  chio tools list                 in another terminal";

/// Run what chio.yaml says
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
    #[command(flatten)]
    version: VersionArgs,
    #[command(flatten)]
    adopt: AdoptArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    args.log.start();
    let mut config = Config::load(io, &args.config)?;
    args.version.apply(&mut config.edges)?;
    let trial = config.shadow_policy.as_ref();
    let policies = PolicySources::new(&config.policy, trial, &config.folder, &io.own);
    let reload = Reload::new(&args.config, &config, io);
    let kernel = config.kernel.config(io)?;
    let plan = Plan {
        servers: config.servers,
        listeners: config.listeners,
        edges: config.edges,
        kernel,
        tells_calls: true,
        reload: Some(reload),
        is_main: true,
        adopt: args.adopt.adopt,
        ..Plan::new(config.location, policies, CHOOSE)
    };
    plan.run(io)
}
