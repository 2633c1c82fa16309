//! Feeds broken inputs to every decoder: a short smoke run, or as long as you like.
//!
//! `fuzz [TARGET] [--seconds N] [--seed N] [--list] [--write-seeds FOLDER]`. An input that breaks a property is printed
//! with the seed that makes it again.
#![expect(clippy::print_stdout, reason = "a command line program")]

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use chio_testkit::decoders::{DECODERS, Target};
use chio_testkit::mutate::{Random, mutate};

/// What was asked for.
struct Options {
    target: Option<String>,
    seconds: u64,
    seed: u64,
    list: bool,
    write_seeds: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            println!("error: {problem}");
            println!(
                "usage: fuzz [TARGET] [--seconds N] [--seed N] [--list] [--write-seeds FOLDER]"
            );
            return ExitCode::from(2);
        }
    };
    if options.list {
        DECODERS.iter().for_each(|target| println!("{}", target.name));
        return ExitCode::SUCCESS;
    }
    let wanted = |target: &&Target| options.target.as_ref().is_none_or(|name| name == target.name);
    let work = |target: &Target| match &options.write_seeds {
        None => run(target, &options),
        Some(folder) => write_seeds(target, folder).is_ok(),
    };
    let targets = Mutex::new(DECODERS.iter().filter(wanted));
    let next = || targets.lock().ok()?.next();
    let work_off = || std::iter::from_fn(next).map(work).filter(|sound| !sound).count() == 0;
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let sound = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work_off)).collect();
        workers.into_iter().all(|worker| worker.join().unwrap_or(false))
    });
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { target: None, seconds: 2, seed: 1, list: false, write_seeds: None };
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let text = arguments.next().unwrap_or_default();
            text.parse::<u64>().map_err(|_| format!("expected a number, found `{text}`"))
        };
        match argument.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--list" => options.list = true,
            "--write-seeds" => {
                let folder = arguments.next().ok_or("expected a folder, found nothing")?;
                options.write_seeds = Some(folder.into());
            }
            name if DECODERS.iter().any(|target| target.name == name) => {
                options.target = Some(argument);
            }
            other => return Err(format!("expected a target or an option, found `{other}`")),
        }
    }
    Ok(options)
}

/// Runs one target until its time is up; false when an input broke a property.
fn run(target: &Target, options: &Options) -> bool {
    let mut corpus = (target.seeds)();
    let seeds = corpus.len();
    let mut random = Random::new(options.seed);
    let start = Instant::now();
    let mut count = 0u64;
    for input in corpus.clone() {
        if !survives(target, &input) {
            return false;
        }
    }
    while start.elapsed() < Duration::from_secs(options.seconds) {
        let input = mutate(&corpus, &mut random);
        if !survives(target, &input) {
            return false;
        }
        // Inputs that still parse lead further in; keep some of them.
        if count.is_multiple_of(64) && corpus.len() < 4 * seeds && is_json(&input) {
            corpus.push(input);
        }
        count += 1;
    }
    println!("{:<10} {count:>9} inputs, none broke it", target.name);
    true
}

/// Writes each seed to a file of its own, as coverage-guided fuzzers take them.
fn write_seeds(target: &Target, folder: &Path) -> io::Result<()> {
    let folder = folder.join(target.name);
    fs::create_dir_all(&folder)?;
    for (n, seed) in (target.seeds)().iter().enumerate() {
        fs::write(folder.join(format!("seed-{n}")), seed)?;
    }
    Ok(())
}

fn is_json(input: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(input).is_ok()
}

fn survives(target: &Target, input: &[u8]) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    if outcome.is_err() {
        println!("{:<10} broken by {}", target.name, input.escape_ascii());
    }
    outcome.is_ok()
}
