//! `chio serve`: what chio.yaml says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use chio_a2a_edge::A2aEdgeConfig;
use chio_kernel::SystemClock;
use chio_mcp_edge::McpOptions;
use chio_native_edge::{Endpoint, NativeListener};
use chio_store::OpenStore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::{A2aEdge, Config, DEFAULT_FILE, Door, McpEdge};
use crate::edge_args::{a_minute, limit_sessions};
use crate::endpoint_file::{EndpointFile, Kept};
use crate::http_door::{Access, Edges, Listener, Taken, anonymous, read_token};
use crate::io::Io;
use crate::outcome::Outcome;
use crate::policies::Source;
use crate::policy_args;
use crate::serving::{Served, Setup, listen, operator_log, run_server, shutdown_on_signal};
use crate::trust::Trust;

/// How another address is chosen.
const CHOOSE: &str = "`listen: 127.0.0.1:0` takes a free port";

const HELP: &str = "\
Runs the servers, the policy and the edges of chio.yaml (`chio init` writes one) until it is told to
end (Ctrl-C), then finishes what runs. `chio doctor` tells what is wrong before.

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
}

/// The doors, before anybody is let in.
struct Doors {
    native: Option<NativeListener>,
    http: Vec<HttpPlace>,
}

/// A door over HTTP, and what is served there.
struct HttpPlace {
    listener: Listener,
    access: Access,
    mcp: bool,
    a2a: bool,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let config = Config::load(io, &args.config)?;
    run_server(async {
        let shutdown = shutdown_on_signal()?;
        let source = |reference: &String| Source::new(reference, &config.folder);
        let on_trial = config.shadow_policy.as_ref().map(source);
        let policies = policy_args::load(io, source(&config.policy), on_trial).await?;
        let (store, mut doors) = open(io, &config).await?;
        let serves_mcp = config.mcp.is_some();
        let setup = Setup::new(store, config.servers.clone(), policies);
        let trust = Trust::default().and_kernels(config.trusted_kernels.clone());
        let mut served = Served::start(Setup { trust, serves_mcp, ..setup }).await?;
        for place in &mut doors.http {
            let anonymous = std::mem::take(&mut place.access.anonymous);
            if let Some(edge) = config.mcp.as_ref().filter(|_| place.mcp) {
                served.mcp(anonymous.clone(), None, options(edge, &served))?;
            }
            if let Some(edge) = config.a2a.as_ref().filter(|_| place.a2a) {
                let options = a2a_options(edge, &served, &place.listener);
                served.a2a(anonymous, None, options)?;
            }
        }
        let kept = reachable(io, &config, &doors, &served)?;
        tell(&served, &doors);
        let until = shutdown.clone();
        let serving = serve(&served, doors, shutdown)?;
        served.serve(serving, &until).await?;
        drop(kept);
        Ok(())
    })?;
    Ok(Outcome::Well)
}

/// Opens the store and the doors; what is refused leaves no kernel behind.
async fn open(io: &mut Io<'_>, config: &Config) -> Result<(OpenStore, Doors)> {
    let taken = Taken { choose: CHOOSE, data: config.data() };
    let mut bound = Vec::new();
    for (door, mcp, a2a) in config.doors() {
        let said = said(io, door)?;
        let listener = Listener::bind(door.listen, said.as_ref(), taken).await?;
        bound.push((listener, said, mcp, a2a));
    }
    let store = OpenStore::open(&config.store, Arc::new(SystemClock::default()))?;
    let native = match &config.native {
        Some(edge) => Some(listen(&Endpoint::Unix(edge.socket.clone())).await?),
        None => None,
    };
    let mut http = Vec::new();
    for (listener, said, mcp, a2a) in bound {
        let access = match said {
            Some(access) => access,
            None => Access::own(io, &config.store)?,
        };
        http.push(HttpPlace { listener, access, mcp, a2a });
    }
    Ok((store, Doors { native, http }))
}

/// Who may come in over HTTP, if the configuration says.
pub(super) fn said(io: &mut Io<'_>, edge: &Door) -> Result<Option<Access>> {
    if let Some(said) = &edge.anonymous {
        return anonymous(io, said).map(Some);
    }
    let mut access = None;
    for (name, file) in &edge.tokens {
        let token = read_token(io, file)?;
        let known: Access = access.take().unwrap_or_default();
        let mut known = known
            .with_token(&token, Some(name))
            .with_context(|| format!("cannot take the token of `{name}`"))?;
        // The first is for the commands of whoever may read it here.
        known.bearer.get_or_insert(token);
        access = Some(known);
    }
    Ok(access)
}

fn options(edge: &McpEdge, served: &Served) -> McpOptions {
    let mut options = McpOptions::new(served.servers.ids.clone());
    if !edge.versions.is_empty() {
        options.versions.clone_from(&edge.versions);
    }
    if let Some(most) = edge.max_sessions {
        limit_sessions(&mut options, most);
    }
    if let Some(idle) = edge.session_idle {
        options.limits.idle = idle;
    }
    options.limits.rate = edge.rate.map(a_minute);
    options.rotate_streams = edge.rotate_streams;
    options
}

fn a2a_options(edge: &A2aEdge, served: &Served, listener: &Listener) -> A2aEdgeConfig {
    let url = edge.url.clone().unwrap_or_else(|| listener.base());
    let mut options = A2aEdgeConfig::new(served.servers.ids.clone(), url);
    if let Some(name) = &edge.name {
        options.agent_name.clone_from(name);
    }
    if let Some(description) = &edge.description {
        options.agent_description.clone_from(description);
    }
    options.http_json = edge.http_json;
    options.tags.clone_from(&edge.tags);
    options.limits.rate = edge.rate.map(a_minute);
    options
}

/// Tells other commands where this process can be reached.
fn reachable(io: &Io<'_>, config: &Config, doors: &Doors, served: &Served) -> Result<Option<Kept>> {
    let place = doors.http.iter().find(|place| place.mcp);
    let (Some(data), Some(HttpPlace { listener, access, .. })) = (config.data(), place) else {
        return Ok(None);
    };
    let native = doors.native.as_ref().map(|native| match native.endpoint() {
        Endpoint::Unix(path) => Endpoint::Unix(whole(path)).to_string(),
        other => other.to_string(),
    });
    let file = EndpointFile {
        mcp: listener.url(),
        native,
        token: access.bearer.as_ref().map(|token| token.to_string()),
        servers: served.servers.ids.clone(),
        process: std::process::id(),
    };
    file.write_in(io, data).map(Some)
}

fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Says what was started.
fn tell(served: &Served, doors: &Doors) {
    served.tell();
    let log = operator_log();
    if let Some(native) = &doors.native {
        log.line(&format!("native {}", native.endpoint()));
    }
    for place in &doors.http {
        if place.mcp {
            log.line(&format!("listening on {}", place.listener.url()));
        }
        if place.a2a {
            log.line(&format!("A2A on {}", place.listener.base()));
        }
        if let Some(told) = &place.access.told {
            log.line(told);
        }
    }
}

/// All doors, until they close.
fn serve(
    served: &Served,
    doors: Doors,
    shutdown: CancellationToken,
) -> Result<impl Future<Output = ()> + use<>> {
    let (Doors { native, http }, edges) = (doors, served.edges());
    let native = match native {
        Some(listener) => Some((listener, served.native(None)?)),
        None => None,
    };
    let until = shutdown.clone();
    Ok(async move {
        let mut serving = JoinSet::new();
        for place in http {
            let mcp = edges.mcp.clone().filter(|_| place.mcp);
            let a2a = edges.a2a.clone().filter(|_| place.a2a);
            let until = until.clone();
            serving.spawn(async move {
                place.listener.serve(Edges { mcp, a2a }, place.access, until).await;
            });
        }
        let over_http = async { while serving.join_next().await.is_some() {} };
        let over_socket = async {
            if let Some((listener, service)) = native {
                listener.serve(service, shutdown).await;
            }
        };
        tokio::join!(over_http, over_socket);
    })
}
