//! Policies that change while a kernel serves: the files are looked at once a second, and at once
//! on a hangup signal. What is broken changes nothing.

use std::convert::Infallible;
use std::fs::File;
use std::io::{IsTerminal, Read as _};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use chio_core::hash::sha256;
use chio_kernel::ChioKernel;
use chio_policy::Policy;
use chio_yaml::Problem;
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;

use crate::policies::{Held, Policies, Source, Unusable};

/// How often the files are looked at.
const BEAT: Duration = Duration::from_secs(1);
/// How long files must stay as they are to be taken for written to their end.
const STILL: Duration = Duration::from_millis(100);
/// How often in a row a file may change under our eyes before we come back later.
const ATTEMPTS: usize = 4;

/// How much of a file is looked at, in bytes; no file of a policy may be so large.
const MOST: u64 = 16 << 20;

/// Watches as long as the kernel serves.
pub(crate) async fn watch(
    policies: &mut Policies,
    kernel: &ChioKernel,
    mut hangup: Signal,
    shutdown: &CancellationToken,
) -> Infallible {
    let mut in_force = Watched::new("policy", &policies.in_force);
    let mut on_trial = policies.on_trial.as_ref().map(|it| Watched::new("shadow policy", it));
    let at_terminal = std::io::stderr().is_terminal();
    loop {
        let asked = tokio::select! {
            () = tokio::time::sleep(BEAT) => false,
            _ = hangup.recv() => true,
        };
        // A terminal that is closed hangs up as well; then no operator is left to end the kernel.
        if asked && at_terminal && !std::io::stderr().is_terminal() {
            shutdown.cancel();
        }
        let mut renewed = in_force.look(&mut policies.in_force, asked).await;
        if let (Some(watched), Some(held)) = (&mut on_trial, &mut policies.on_trial) {
            renewed |= watched.look(held, asked).await;
        }
        if renewed {
            policies.renewed();
            kernel.set_pipeline(policies.pipeline());
        }
    }
}

/// What files held when they were looked at; none for one that could not be read.
type Contents = Vec<Option<[u8; 32]>>;

fn contents(files: &[PathBuf]) -> Contents {
    let content = |file: &PathBuf| {
        let mut bytes = Vec::new();
        File::open(file).and_then(|file| file.take(MOST).read_to_end(&mut bytes)).ok()?;
        Some(sha256(&bytes))
    };
    files.iter().map(content).collect()
}

/// A policy whose files are watched.
struct Watched {
    /// What it is to the kernel.
    role: &'static str,
    files: Vec<PathBuf>,
    seen: Contents,
    /// What was wrong the last time, and with what, as long as it is not mended.
    broken: Option<(Contents, Vec<String>)>,
}

impl Watched {
    fn new(role: &'static str, held: &Held) -> Self {
        let files = held.policy.files().to_vec();
        // What changes between the reading and this look is found when nothing is taken for seen.
        Self { role, seen: Contents::new(), files, broken: None }
    }

    /// Looks at the files; tells whether there is another policy now.
    async fn look(&mut self, held: &mut Held, asked: bool) -> bool {
        let (files, seen) = (self.files.clone(), self.seen.clone());
        let (source, again) = (held.source.clone(), asked || self.broken.is_some());
        // Files may be far away, and documents take a while to read.
        let look = move || {
            if !again && (files.is_empty() || contents(&files) == seen) {
                return None;
            }
            settled(&source, files)
        };
        let Ok(Some(read)) = tokio::task::spawn_blocking(look).await else { return false };
        if asked {
            // An operator who asks is told again.
            self.broken = None;
        }
        let policy = match read.policy {
            Ok(policy) => policy,
            Err(problems) => {
                self.complain(held, read.contents, &Unusable::Broken(problems));
                return false;
            }
        };
        let pipeline = match policy.proven().await {
            Ok(pipeline) => pipeline,
            Err(unproved) => {
                self.complain(held, read.contents, &Unusable::Unproved(unproved));
                return false;
            }
        };
        let first = self.seen.is_empty() && policy.hash() == held.policy.hash();
        (self.files, self.seen) = (read.files, read.contents);
        let mended = self.broken.take().is_some();
        if first && !asked && !mended {
            return false;
        }
        (held.policy, held.pipeline) = (policy, pipeline);
        tracing::info!("{} reloaded: {} {}", self.role, held.name(), held.policy.hash());
        true
    }

    /// Says what is wrong, once.
    fn complain(&mut self, held: &Held, contents: Contents, unusable: &Unusable) {
        let lines = unusable.lines();
        let broken = Some((contents, lines));
        if self.broken == broken {
            return;
        }
        let (role, hash) = (self.role, held.policy.hash());
        tracing::error!("{role} not reloaded, {} {hash} stays:", held.name());
        let lines = broken.iter().flat_map(|(_, lines)| lines);
        lines.for_each(|line| tracing::error!("  {line}"));
        self.broken = broken;
    }
}

/// A policy as it was read from files that did not change meanwhile.
struct Read {
    files: Vec<PathBuf>,
    contents: Contents,
    policy: Result<Policy, Vec<Problem>>,
}

/// Reads a policy whose files stay as they are for a moment: a document of which only a part is
/// written yet may be a document as well, with a part of the rules.
fn settled(source: &Source, mut files: Vec<PathBuf>) -> Option<Read> {
    for _ in 0..ATTEMPTS {
        let before = contents(&files);
        let policy = source.read();
        if let Ok(policy) = &policy
            && policy.files() != files
        {
            // The files that it names now are looked at before they are read.
            files = policy.files().to_vec();
            continue;
        }
        thread::sleep(STILL);
        if contents(&files) == before {
            return Some(Read { files, contents: before, policy });
        }
    }
    None
}
