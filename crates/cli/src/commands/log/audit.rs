//! `chio log audit`: a whole store re-verified.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use chio_core::bundle::ReceiptBundle;
use chio_core::checkpoint::log_id;
use chio_kernel::audit::{AuditProgress, AuditReport, AuditTrust, LogAudit, audit};
use chio_kernel::store::{SharedStore, StoreError};
use serde::Serialize;

use crate::io::Io;
use crate::outcome::Outcome;
use crate::store_args::{StoreArgs, block_on};
use crate::text;

const HELP: &str = "\
Checks every receipt (id, signature, parameters, canonical form), that none is missing or there
twice, every checkpoint (signature, link, root over its receipts), and that an authority vouches for
each kernel; that budgets are debited at least as much as receipts say, and that what a receipt calls
revoked is; and that nothing is behind the marks that kernels keep beside their keys in the data
directory. Says exactly what is wrong; exit code 1 if anything is.

Not to be seen without help: receipts that were taken from the end of a log after its last mark (one
is made each second in which something happens); a store that was put back together with its data
directory; revocations that denied no call and came after the last mark. An auditor who keeps an
export sees that nothing before it was changed or taken away: --extends checks that every checkpoint
of that export is in the store as it was.

Without --authority the store's own authority key is taken. To check a store that somebody else
keeps, pass the authority's public key as you know it.

Example:
  chio log audit --data .chio --authority authority.pub";

/// Re-verify every receipt and checkpoint of a store
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// An authority that you trust, by public key or key file; can be repeated
    #[arg(long, value_name = "KEY")]
    authority: Vec<String>,
    /// A kernel that needs no certificate, by public key or key file; can be repeated
    #[arg(long, value_name = "KEY")]
    trusted_key: Vec<String>,
    /// An earlier export, whose checkpoints must all be there; can be repeated
    #[arg(long, value_name = "FILE")]
    extends: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    valid: bool,
    receipts: u64,
    checkpoints: u64,
    seconds: f64,
    #[serde(flatten)]
    report: &'a AuditReport,
}

/// Audits the store.
async fn examine(args: &Args, io: &mut Io<'_>, start: Instant) -> Result<Examined> {
    let store = args.store.open_existing(io).await?;
    let mut trust = AuditTrust {
        authorities: io.public_keys("--authority", &args.authority)?,
        kernels: io.public_keys("--trusted-key", &args.trusted_key)?,
    };
    let own = trust.authorities.is_empty() && trust.kernels.is_empty();
    if own {
        trust.authorities.extend(store.authority_public().await?);
    }
    // Before the store is read: it may go on meanwhile.
    let marks = store.marks().await?;
    let (shared, mut bar) = (store.shared(), Bar::new(start));
    let report = audit(&*shared, &trust, |progress| bar.show(progress)).await;
    bar.clear();
    let mut report = report?;
    report.compare(&*shared, &marks).await?;
    if let Err(StoreError::Refused(problem)) = store.check_keys().await {
        report.blame(None, problem);
    }
    for path in &args.extends {
        let kept = super::super::receipt::read_bundle(io, path)?;
        check_extends(&shared, &kept, &mut report).await?;
    }
    Ok(Examined { report, trust, own, marks: marks.sound.len() })
}

/// What was examined, and against what.
struct Examined {
    report: AuditReport,
    trust: AuditTrust,
    /// Whether the store's own authority is trusted.
    own: bool,
    /// How many marks can be read.
    marks: usize,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let start = Instant::now();
    let Examined { report, trust, own, marks } = block_on(examine(args, io, start))?;
    let seconds = start.elapsed().as_secs_f64();
    let receipts = report.logs.iter().map(|log| log.entries).sum();
    let checkpoints = report.logs.iter().map(|log| log.checkpoints).sum();
    let valid = report.is_clean();
    if args.json {
        io.json(&Document { valid, receipts, checkpoints, seconds, report: &report })?;
        return Ok(Outcome::of(valid));
    }
    for log in &report.logs {
        show(io, log)?;
    }
    if own {
        match trust.authorities.first() {
            Some(key) => io.list("authority", [&*key.to_hex(), "(the store's own)"])?,
            None => io.field("authority", "none is known: pass the one that you trust")?,
        }
    }
    io.field(
        "marks",
        match marks {
            0 => "none here: what was taken from the end of a log shows only with --extends"
                .to_owned(),
            some => format!(
                "{}; what is later, or came back together with them, shows only with --extends",
                text::count(some, "kernel")
            ),
        },
    )?;
    let rate = rate(receipts, seconds);
    let sum =
        format!("{receipts} receipts under {checkpoints} checkpoints in {seconds:.1} s{rate}");
    io.field("checked", sum)?;
    io.result(if valid { "clean" } else { "NOT CLEAN" }, "")?;
    for problem in report.missing.iter().chain(&report.store) {
        io.complain("error", problem);
    }
    for log in &report.logs {
        for problem in &log.problems {
            io.complain("error", format_args!("{}: {problem}", log.log_id));
        }
        let untold = log.problem_count.saturating_sub(log.problems.len().try_into()?);
        if untold > 0 {
            io.complain("error", format_args!("{}: and {untold} more", log.log_id));
        }
    }
    Ok(Outcome::of(valid))
}

/// Checks that every checkpoint of an earlier export is in the store as it was. The audit itself
/// has checked that those after it follow.
async fn check_extends(
    store: &SharedStore,
    kept: &ReceiptBundle,
    report: &mut AuditReport,
) -> Result<()> {
    for checkpoint in &kept.checkpoints {
        let (id, seq) = (log_id(&checkpoint.body.kernel_key), checkpoint.body.checkpoint_seq);
        let found = store.checkpoints(&id, seq, 1).await?.pop();
        if found.as_ref() == Some(checkpoint) {
            continue;
        }
        let problem = match found {
            Some(found) if found.body.checkpoint_seq == seq => "it is another than in the export",
            _ => "it is in the export, and not in the store",
        };
        report.blame(Some(&id), format!("checkpoint {seq}: {problem}"));
    }
    Ok(())
}

fn show(io: &mut Io<'_>, log: &LogAudit) -> Result<()> {
    io.field("log", text::short_id(&log.log_id))?;
    let vouched = if log.certified { "certified" } else { "NOT CERTIFIED" };
    io.field("", format_args!("of the kernel ({vouched})"))?;
    io.field("", &log.kernel_key)?;
    let mut line = format!("{} receipts, {} checkpoints", log.entries, log.checkpoints);
    if log.pending > 0 {
        line.push_str(&format!(", {} after the last checkpoint", log.pending));
    }
    if log.open_intents > 0 {
        let open = text::count(usize::try_from(log.open_intents)?, "call");
        line.push_str(&format!(", {open} begun and not ended"));
    }
    io.field("", line)
}

fn rate(receipts: u64, seconds: f64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = receipts as f64 / seconds.max(0.001);
    if receipts < 1000 { String::new() } else { format!(", {rate:.0} a second") }
}

/// A progress bar on a terminal; nothing anywhere else.
struct Bar {
    start: Instant,
    drawn: Option<Instant>,
    on: bool,
}

impl Bar {
    const WIDTH: u64 = 40;
    const EVERY: Duration = Duration::from_millis(100);

    fn new(start: Instant) -> Self {
        Self { start, drawn: None, on: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, at: AuditProgress) {
        if !self.on || self.drawn.is_some_and(|drawn| drawn.elapsed() < Self::EVERY) {
            return;
        }
        self.drawn = Some(Instant::now());
        let filled = at.done.saturating_mul(Self::WIDTH).checked_div(at.total).unwrap_or_default();
        let filled = usize::try_from(filled.min(Self::WIDTH)).unwrap_or_default();
        let width = usize::try_from(Self::WIDTH).unwrap_or_default();
        let bar = format!("{:<width$}", "#".repeat(filled));
        let rate = rate(at.done, self.start.elapsed().as_secs_f64());
        let (done, total) = (at.done, at.total);
        let _ = write!(std::io::stderr(), "\r[{bar}] {done}/{total} receipts{rate}  ");
    }

    fn clear(&self) {
        if self.drawn.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
