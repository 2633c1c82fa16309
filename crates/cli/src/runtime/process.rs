//! The process of a server: its signals, its open files, its threads.

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The most open files that a server asks for. Its children have the same limit, and some of them
/// walk through all of it.
const MOST_FILES: u64 = 16_384;
/// How long processes may take to be killed that were being started.
pub(super) const KILLED: Duration = Duration::from_millis(100);

/// Cancelled when the process is told to end. A second word ends it at once.
pub(crate) fn shutdown_on_signal() -> Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let shutdown = CancellationToken::new();
    let told = shutdown.clone();
    tokio::spawn(async move {
        for told_before in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if told_before {
                std::process::exit(130);
            }
            told.cancel();
        }
    });
    Ok(shutdown)
}

/// Takes more open files, as far as the system grants them: each connection is one, and the usual
/// first limit is less than the connections that a listener takes.
fn raise_file_limit() {
    let granted = getrlimit(Resource::Nofile);
    let wanted = granted.maximum.map_or(MOST_FILES, |most| most.min(MOST_FILES));
    if granted.current.is_some_and(|current| current < wanted) {
        // Where it stays as it is, connections wait.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..granted });
    }
}

/// How many files this process may have open.
pub(crate) fn open_files() -> usize {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(MOST_FILES);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// Runs a server on every core, and leaves without waiting for threads that wait for input.
pub(crate) fn run_server<T>(server: impl Future<Output = Result<T>>) -> Result<T> {
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(server);
    // What is still there is dropped, and processes of servers are killed by that.
    runtime.shutdown_timeout(KILLED);
    result
}
