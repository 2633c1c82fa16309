//! What is looked at, in order.

mod disk;

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use chio_edge::Endpoint;
use chio_kernel::SystemClock;
use chio_net::auth::{Authenticator, check_bind};
use chio_policy::own::Own;
use chio_store::{Location, OpenStore};

use crate::access::AccessConfig;
use crate::adoption::{SECRETS, foreign};
use crate::config::Config;
use crate::endpoint_file::EndpointFile;
use crate::health::Check;
use crate::io::Io;
use crate::listeners::Transport;
use crate::policies::{Source, Unusable};

/// What only the owner may do.
const OTHERS: u32 = 0o077;
/// The longest path that a socket may have.
const MAX_SOCKET: usize = 107;

/// Looks at everything that a configuration names.
pub(super) async fn all(io: &mut Io<'_>, config: &Config) -> Result<Vec<Check>> {
    let mut checks = vec![policy("policy", &config.policy, config).await];
    if let Some(reference) = &config.shadow_policy {
        checks.push(policy("shadow policy", reference, config).await);
    }
    for server in &config.servers {
        checks.push(server.check().await);
    }
    let running = config.data().and_then(EndpointFile::running_in);
    for listener in &config.listeners {
        let edges = config.edges.iter().filter(|edge| edge.listener == listener.name);
        let what = edges.map(|edge| edge.kind.name).next().unwrap_or_default();
        match &listener.transport {
            Transport::Http { address: listens, access, .. } => {
                checks.push(address(what, *listens, access, running.as_ref()));
                checks.extend(self::access(io, access));
            }
            Transport::Socket { endpoint: Endpoint::Unix(path), .. } => {
                checks.push(socket(what, path, config));
            }
            Transport::Socket { .. } | Transport::Stdio { .. } => {}
        }
    }
    let (data, store_folder) = (config.data(), config.location.store().folder());
    let store_folder = store_folder.filter(|found| data != Some(*found));
    for place in data.into_iter().chain(store_folder) {
        checks.push(folder(place));
        checks.extend(disk::check(place));
    }
    checks.extend(store(&config.location).await);
    Ok(checks)
}

async fn policy(what: &str, reference: &str, config: &Config) -> Check {
    let source = Source::new(reference, &config.folder, &Arc::new(Own::of_folder(&config.folder)));
    let to_do = format!("`chio policy check {reference}` tells more");
    let policy = match source.read() {
        Ok(policy) => policy,
        Err(problems) => {
            let found = Unusable::Broken(problems).lines().join("; ");
            return Check::wrong(what, found).with_advice(to_do);
        }
    };
    match policy.proven().await {
        Ok(_) => Check::fine(what, format!("{} holds", source.name(&policy))),
        Err(unproved) => Check::wrong(what, unproved.to_string()).with_advice(to_do),
    }
}

/// Whether an address is free, and may be used.
fn address(
    what: &str,
    listen: SocketAddr,
    access: &AccessConfig,
    running: Option<&EndpointFile>,
) -> Check {
    if !matches!(access, AccessConfig::Tokens { .. })
        && let Err(error) = check_bind(listen, &Authenticator::anonymous())
    {
        return Check::wrong(what, error.to_string())
            .with_advice("add `tokens`, or listen on 127.0.0.1");
    }
    match TcpListener::bind(listen) {
        Ok(_) => Check::fine(what, format!("{listen} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            if let Some(running) = running.filter(|running| running.is_at(listen)) {
                let process = running.process;
                return Check::note(what, format!("chio runs already, as process {process}"));
            }
            let port = listen.port();
            Check::wrong(what, format!("{listen} is taken")).with_advice(format!(
                "`ss -ltnp 'sport = :{port}'` or `lsof -i :{port}` tells by whom; port 0 takes a \
                 free one"
            ))
        }
        Err(error) => Check::wrong(what, format!("cannot listen on {listen}: {error}")),
    }
}

/// Whether what callers have to show can be used.
fn access(io: &mut Io<'_>, access: &AccessConfig) -> Option<Check> {
    match access.read(io) {
        Ok(None) => None,
        Ok(Some(_)) => {
            let AccessConfig::Tokens { files, .. } = access else {
                return Some(Check::note("access", "every client on this machine is accepted"));
            };
            let exposed = files.iter().find(|(_, file)| is_exposed(file));
            Some(match exposed {
                Some((_, file)) => {
                    let file = file.display();
                    Check::wrong("access", format!("others can read {file}"))
                        .with_advice(format!("chmod 600 {file}"))
                }
                None => Check::fine("access", "every token can be used"),
            })
        }
        Err(error) => Some(Check::wrong("access", format!("{error:#}"))),
    }
}

/// Whether the native socket can be made.
fn socket(what: &str, path: &Path, config: &Config) -> Check {
    let shown = path.display();
    let length = path.as_os_str().len();
    if length > MAX_SOCKET {
        let found = format!("expected a path of at most {MAX_SOCKET} bytes, found {length}");
        return Check::wrong(what, found)
            .with_advice("name a shorter one with `listeners.NAME.socket`");
    }
    let parent = path.parent().unwrap_or(Path::new("."));
    if !parent.is_dir() && config.data() != Some(parent) {
        let found = format!("there is no folder for the socket {shown}");
        return Check::wrong(what, found).with_advice("make it, or name another socket");
    }
    match UnixStream::connect(path) {
        Ok(_) => Check::note(what, format!("a process answers on {shown} already")),
        Err(_) => Check::fine(what, format!("{shown} can be used")),
    }
}

/// Whether a folder of ours is its owner's alone.
fn folder(data: &Path) -> Check {
    let (what, shown) = ("folder", data.display());
    if !data.exists() {
        return Check::note(what, format!("there is no {shown}; the first start makes it"));
    }
    match foreign(data) {
        Ok(None) => {}
        Ok(Some(reason)) => {
            return Check::wrong(what, format!("{shown} was not made here: {reason}"))
                .with_advice("--adopt uses it with the keys that are in it");
        }
        Err(error) => return Check::wrong(what, format!("{error:#}")),
    }
    if is_exposed(data) {
        return Check::wrong(what, format!("others can look into {shown}"))
            .with_advice(format!("chmod 700 {shown}"));
    }
    let exposed = SECRETS.iter().map(|name| data.join(name)).find(|file| is_exposed(file));
    match exposed {
        Some(file) => {
            let file = file.display();
            Check::wrong(what, format!("others can read {file}"))
                .with_advice(format!("chmod 600 {file}"))
        }
        None => Check::fine(what, format!("{shown} is yours alone")),
    }
}

fn is_exposed(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & OTHERS != 0)
}

/// Whether the store can be opened, and calls run there.
async fn store(location: &Location) -> Vec<Check> {
    let what = "store";
    if let Some(absence) = location.store().absence() {
        return vec![match location.check_unused() {
            Ok(()) => Check::note(what, absence),
            Err(error) => Check::wrong(what, error.to_string()),
        }];
    }
    let url = location.store();
    match OpenStore::open_existing(location, Arc::new(SystemClock::default())).await {
        Ok(store) => {
            let (marks, keys) = (store.check_marks().await, store.check_keys().await);
            let authority = store.authority().await;
            let stopped = store.shared().revoked_since(u64::MAX).await;
            store.close();
            let opens = match marks.and(keys).and(authority) {
                Ok(Some(_)) => Check::fine(what, format!("{url} opens")),
                Ok(None) => {
                    let known =
                        "the authority's key is not here: only kernels that it certified start";
                    Check::note(what, format!("{url} opens, but {known}"))
                }
                Err(error) => Check::wrong(what, error.to_string()),
            };
            let stopped = stopped.ok().and_then(|it| it.stopped).map(|reason| {
                Check::wrong(
                    "calls",
                    format!("every call is denied, everything is stopped: {reason}"),
                )
                .with_advice("`chio kernel resume` ends the stop")
            });
            std::iter::once(opens).chain(stopped).collect()
        }
        Err(error) => vec![Check::wrong(what, error.to_string())],
    }
}
