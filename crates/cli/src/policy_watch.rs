//! Policies that change while a kernel serves: the files are looked at once a second, and at once
//! on a hangup signal. What is broken changes nothing.
//!
//! What a call writes cannot always be told by its arguments: `git checkout` names no file. So a
//! change that came while a tool with side effects ran waits for the signal.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{IsTerminal, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use chio_core::hash::sha256;
use chio_kernel::ChioKernel;
use chio_policy::Policy;
use chio_store::OpenStore;
use chio_yaml::Problem;
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::policies::{Held, Policies, Source, Unusable};
use crate::reload::Reload;

/// How often the files are looked at.
const BEAT: Duration = Duration::from_secs(1);
/// How long files must stay as they are to be taken for written to their end.
const STILL: Duration = Duration::from_millis(100);
/// How often in a row a file may change under our eyes before we come back later.
const ATTEMPTS: usize = 4;

/// How much of a file is looked at, in bytes; no file of a policy may be so large.
const MOST: u64 = 16 << 20;

/// Watches as long as the kernel serves. A configuration, if there is one, is read again as well on a
/// hangup signal, and then all of it is taken or nothing.
pub(crate) async fn watch(
    policies: &mut Policies,
    (kernel, store): (&ChioKernel, &OpenStore),
    reload: Option<&Reload>,
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
        if let Some(reload) = reload.filter(|_| asked) {
            let file = reload.name();
            match reload.take(policies, kernel, store).await {
                Ok(()) => {
                    in_force = Watched::new("policy", &policies.in_force);
                    on_trial =
                        policies.on_trial.as_ref().map(|it| Watched::new("shadow policy", it));
                    let policy = policies.in_force.summary();
                    tracing::info!("{file} reloaded: policy {policy}");
                }
                Err(problems) => {
                    tracing::error!("{file} not reloaded, everything stays as it is:");
                    problems.iter().for_each(|problem| tracing::error!("  {problem}"));
                }
            }
            continue;
        }
        let mut renewed = in_force.look(&mut policies.in_force, kernel, asked).await;
        if let (Some(watched), Some(held)) = (&mut on_trial, &mut policies.on_trial) {
            renewed |= watched.look(held, kernel, asked).await;
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

/// When a file became what it is, as its file system says; none where that says nothing. No program
/// sets this time.
fn changed_at(file: &Path) -> Option<Instant> {
    let found = fs::metadata(file).ok()?;
    let nanos = u32::try_from(found.ctime_nsec()).ok()?;
    let since_1970 = Duration::new(u64::try_from(found.ctime()).ok()?, nanos);
    let age = clock::system_time().duration_since(SystemTime::UNIX_EPOCH + since_1970).ok()?;
    Instant::now().checked_sub(age)
}

/// When the first of the changes since a look may have been made: not before that look, nor before
/// the time of the file. Another file may have come in the place of one by its folder or by a link,
/// with an older time.
fn first_change(files: &[PathBuf], seen: &Contents, found: &Read, looked: Instant) -> Instant {
    if files != found.files || seen.len() != found.contents.len() {
        return looked;
    }
    let both = seen.iter().zip(&found.contents).zip(files);
    let changed = both.filter(|((before, now), _)| before != now);
    let times = changed.map(|(_, file)| changed_at(file).unwrap_or(looked));
    times.min().map_or(looked, |time| time.max(looked))
}

/// A policy whose files are watched.
struct Watched {
    /// What it is to the kernel.
    role: &'static str,
    files: Vec<PathBuf>,
    seen: Contents,
    /// When they were last looked at.
    looked: Instant,
    /// The hash of a policy that was not taken, because a call may have written it.
    refused: Option<String>,
    /// What was wrong the last time, and with what, as long as it is not mended.
    broken: Option<(Contents, Vec<String>)>,
}

impl Watched {
    fn new(role: &'static str, held: &Held) -> Self {
        let files = held.policy.files().to_vec();
        // What changes between the reading and this look is found when nothing is taken for seen.
        let (seen, looked) = (Contents::new(), Instant::now());
        Self { role, seen, files, looked, refused: None, broken: None }
    }

    /// Whether a policy is not taken because a call may have written it. Then it waits until an
    /// operator asks for it, or the change is undone.
    fn refuses(
        &mut self,
        held: &Held,
        policy: &Policy,
        since: Instant,
        kernel: &ChioKernel,
    ) -> bool {
        if policy.hash() == held.policy.hash() {
            self.refused = None;
            return false;
        }
        let refused = self.refused.is_some() || kernel.changed_since(since);
        let hash = policy.hash().to_owned();
        if refused && self.refused.as_ref() != Some(&hash) {
            let (role, old) = (self.role, held.policy.hash());
            tracing::error!("{role} not reloaded, {} {old} stays:", held.name());
            tracing::error!(
                "  its files changed while a tool ran that may have done it; SIGHUP has {hash} taken"
            );
            self.refused = Some(hash);
        }
        refused
    }

    /// Looks at the files; tells whether there is another policy now.
    async fn look(&mut self, held: &mut Held, kernel: &ChioKernel, asked: bool) -> bool {
        let (files, seen) = (self.files.clone(), self.seen.clone());
        let (before, now) = (self.looked, Instant::now());
        let waits = self.broken.is_some() || self.refused.is_some();
        let (source, again) = (held.source.clone(), asked || waits);
        // Files may be far away, and documents take a while to read.
        let look = move || {
            let same = files.is_empty() || contents(&files) == seen;
            let found = if same && !again { None } else { settled(&source, files.clone()) };
            let found = found.map(|found| (first_change(&files, &seen, &found, before), found));
            (same, found)
        };
        let Ok((same, found)) = tokio::task::spawn_blocking(look).await else { return false };
        if same {
            self.looked = now;
        }
        let Some((since, read)) = found else { return false };
        if asked {
            // An operator who asks is told again.
            (self.broken, self.refused) = (None, None);
        }
        let policy = match read.policy {
            Ok(policy) => policy,
            Err(problems) => {
                self.complain(held, read.contents, &Unusable::Broken(problems));
                return false;
            }
        };
        if !asked && self.refuses(held, &policy, since, kernel) {
            return false;
        }
        let pipeline = match policy.proven().await {
            Ok(pipeline) => pipeline,
            Err(unproved) => {
                self.complain(held, read.contents, &Unusable::Unproved(unproved));
                return false;
            }
        };
        let first = self.seen.is_empty() && policy.hash() == held.policy.hash();
        (self.files, self.seen, self.looked) = (read.files, read.contents, now);
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
