//! `chio up`: the product on its embedded defaults.

mod agent;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use chio_kernel::SystemClock;
use chio_native_edge::Endpoint;
use chio_store::{OpenStore, StoreUrl};

use super::native::SOCKET;
use crate::io::Io;
use crate::outcome::Outcome;
use crate::policy_args::PolicyArgs;
use crate::serving::{Served, Setup, listen, notes_folder, run_server, shutdown_on_signal};
use crate::store_args::DEFAULT_FOLDER;
use crate::text;
use crate::trust::TrustArgs;
use agent::Tokens;

const HELP: &str = "\
Starts a kernel with the demo tools. State is kept in .chio: the authority that issues tokens, the
kernel's key, the receipt log, and a demo agent with a token for the demo tools. Leave it running
and call it from another terminal; the commands to do so are printed. Calls that need approval wait
until `chio approvals` answers them.

Calls are judged by --policy; a change of its files takes effect within seconds, and a broken change
is told and changes nothing. Where the policy has default capabilities, the demo agent gets those.

Examples:
  chio up --data /tmp/chio-demo
  chio up --policy policy.yaml --shadow-policy strict";

/// Run a kernel with demo tools, state in .chio
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Keep state in this folder
    #[arg(long, value_name = "DIR", default_value = DEFAULT_FOLDER)]
    data: PathBuf,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    trust: TrustArgs,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let folder = io.folder.join(&args.data);
    let url = StoreUrl::Sqlite(folder.clone());
    let trust = args.trust.read(io, Vec::new())?;
    run_server(async {
        let shutdown = shutdown_on_signal()?;
        let policies = args.policy.load(io).await?;
        let store = OpenStore::open(&url, Arc::new(SystemClock::default()))?;
        // The door is tried before a kernel starts, so that one that is refused leaves no trace.
        let listener = listen(&Endpoint::Unix(folder.join(SOCKET))).await?;
        let served = Served::start(Setup {
            store,
            notes: notes_folder(&url),
            kernel_key: None,
            trust,
            deadline: None,
            policies,
        })
        .await?;
        let tokens = agent::tokens(io, &served, &args.data).await?;
        welcome(io, args, &served, &tokens)?;
        io.flush()?;
        let (service, until) = (served.native(None)?, shutdown.clone());
        served.serve(listener.serve(service, shutdown), &until).await?;
        io.say("ended: everything that ran is in the log")
    })?;
    Ok(Outcome::Well)
}

fn welcome(io: &mut Io<'_>, args: &Args, served: &Served, tokens: &Tokens) -> Result<()> {
    let data = args.data.display();
    io.field("kernel", served.kernel.public_key())?;
    io.field("state", &data)?;
    io.field("native", format_args!("unix:{}", args.data.join(SOCKET).display()))?;
    for manifest in served.kernel.manifests() {
        let tools: Vec<&str> = manifest.tools.iter().map(|tool| tool.name.as_str()).collect();
        io.field("tools", format_args!("{}: {}", manifest.server_id, tools.join(", ")))?;
    }
    io.field("policy", served.policies.in_force.summary())?;
    if let Some(trial) = &served.policies.on_trial {
        io.field("on trial", trial.summary())?;
    }
    for line in tokens.more() {
        io.field("token", line)?;
    }
    let is_default = args.data == Path::new(DEFAULT_FOLDER);
    let (unix, place) = if is_default {
        (String::new(), String::new())
    } else {
        let socket = args.data.join(SOCKET);
        (format!(" --unix {}", quoted(&socket)), format!(" --data {}", quoted(&args.data)))
    };
    let (token, tool, arguments) = tokens.example();
    let token = quoted(token);
    io.say("")?;
    io.say("In another terminal:")?;
    for line in [
        format!("  chio native call{unix} --token {token} demo {tool}{arguments}"),
        format!("  chio receipt list{place}"),
        format!("  chio log audit{place}"),
    ] {
        io.say(line)?;
    }
    io.say("")?;
    io.say("Ctrl-C ends it.")
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    text::quoted(&path.display().to_string())
}
