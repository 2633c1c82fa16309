//! `cargo xtask fuzz`: runs the fuzzer of `chio-testkit`, which knows the targets and the flags,
//! or with `--guided` the coverage-guided one of `fuzz/`.

use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{cargo, command, outcome, read};
use crate::steps::Outcome;
use crate::{Usage, tree};

/// Two seconds for each target, with what was built with the tests: enough to see that all of them
/// still run.
pub(crate) fn smoke() -> Command {
    command(&tree::built("fuzz").to_string_lossy(), &["--seconds", "2"])
}

/// What makes a stable compiler count which code an input reaches, as libFuzzer needs it.
const COVERAGE_FLAGS: &str = "--cfg fuzzing -Ccodegen-units=1 -Cdebug-assertions \
     -Cpasses=sancov-module \
     -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Where inputs and findings are kept, below the root.
const FOLDER: &str = "target/fuzz";

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    if arguments.iter().any(|argument| argument == "--guided") {
        return guided(arguments);
    }
    let mut command = blind();
    command.args(arguments);
    passed(command)
}

fn blind() -> Command {
    let fuzz = ["-p", "chio-testkit", "--features", "policy", "--bin", "fuzz", "--"];
    cargo(&[&["run", "--release"], &fuzz[..]].concat())
}

fn passed(command: Command) -> Result<bool> {
    Ok(outcome(command)? == Outcome::Passed)
}

/// Builds one target with coverage counters and runs it on a corpus that starts from its seeds.
fn guided(arguments: &[String]) -> Result<bool> {
    let (target, seconds) = guided_arguments(arguments)?;
    let corpus = format!("{FOLDER}/corpus");
    let mut seeds = blind();
    seeds.args([target, "--write-seeds", &corpus]);
    if !passed(seeds)? {
        return Ok(false);
    }
    let host = host()?;
    let folder = tree::root().join(FOLDER);
    let mut build = cargo(&["build", "--release", "--manifest-path", "fuzz/Cargo.toml"]);
    build.args(["--target", &host]).arg("--target-dir").arg(&folder);
    build.env("RUSTFLAGS", COVERAGE_FLAGS);
    if !passed(build)? {
        return Ok(false);
    }
    let program = folder.join(&host).join("release/chio-fuzz");
    let program = program.to_str().context("expected a workspace path that is text")?;
    let mut fuzz = command(program, &[&format!("{corpus}/{target}")]);
    fuzz.arg(format!("-max_total_time={seconds}"));
    fuzz.arg(format!("-artifact_prefix={FOLDER}/finding-{target}-"));
    fuzz.env("CHIO_FUZZ_TARGET", target);
    passed(fuzz)
}

/// The target and the seconds; a guided run needs its target named.
fn guided_arguments(arguments: &[String]) -> Result<(&str, u64)> {
    let usage = |message: String| anyhow::Error::from(Usage(message));
    let (mut target, mut seconds) = (None, 60);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--guided" => {}
            "--seconds" => {
                let text = arguments.next().map_or("", String::as_str);
                seconds = text
                    .parse()
                    .map_err(|_| usage(format!("expected a number of seconds, found `{text}`")))?;
            }
            name if !name.starts_with('-') => target = Some(name),
            other => return Err(usage(format!("unknown argument `{other}` of a guided run"))),
        }
    }
    let target = target.ok_or_else(|| {
        usage("expected a target to guide, found none; `--list` names them".to_owned())
    })?;
    Ok((target, seconds))
}

/// The platform that the compiler builds for by default.
fn host() -> Result<String> {
    let about = read(command("rustc", &["-vV"]))?;
    let line = about.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("expected a `host:` line from `rustc -vV`")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::guided_arguments;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_guided_run_needs_its_target_and_takes_its_seconds() {
        assert_eq!(guided_arguments(&words("--guided token")).unwrap(), ("token", 60));
        assert_eq!(guided_arguments(&words("token --seconds 5 --guided")).unwrap(), ("token", 5));
        for line in ["--guided", "--guided token --seconds x", "--guided token --seed 1"] {
            assert!(guided_arguments(&words(line)).is_err(), "{line}");
        }
    }
}
