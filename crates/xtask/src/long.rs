//! `cargo xtask long`: runs that take hours, cut into rounds. A round that passed is not run again at
//! the same commit, so a run that was interrupted goes on; with `--shard`, machines share the rounds.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::output::say;
use crate::shard::Shard;
use crate::shell::{cargo, command, outcome, read};
use crate::steps::Outcome;
use crate::{Usage, tree};

/// Where it is kept which rounds have passed, below the root.
const FOLDER: &str = "target/long";
/// How many rounds there are when the command does not say.
const ROUNDS: usize = 100;
/// Cases for each property in a round; `cargo xtask test` runs 256.
const CASES: &str = "20000";
/// How long a round of the fuzzer takes for each of its targets.
const FUZZ_SECONDS: &str = "60";
/// cargo-mutants, and where it is installed when it is not there, below the root.
const MUTANTS: &str = "cargo-mutants";
const MUTANTS_VERSION: &str = "27.1.0";
const TOOLS: &str = "target/tools";

/// One round of many.
#[derive(Debug, Clone, Copy)]
struct Round {
    number: usize,
    of: usize,
}

/// One kind of long run: a round of it is this command.
struct Part {
    name: &'static str,
    command: fn(Round) -> Result<Command>,
}

const PARTS: &[Part] = &[
    Part { name: "crash", command: crash },
    Part { name: "properties", command: properties },
    Part { name: "fuzz", command: fuzz },
    Part { name: "mutants", command: mutants },
];

/// Processes that are killed under load, a clock that jumps, disks that forget and disks that fail.
fn crash(round: Round) -> Result<Command> {
    let mut command = cargo(&["test", "--release", "-p", "chio-cli", "--test", "crash"]);
    command.env("CHIO_CRASH_SEED", round.number.to_string()).env("CHIO_CRASH_KILLS", "1000");
    Ok(command)
}

/// Every property, with more cases.
fn properties(round: Round) -> Result<Command> {
    let mut command = cargo(&["test", "--release", "--tests"]);
    for package in ["chio-core", "chio-net", "chio-yaml", "chio-policy", "chio-cross-protocol"] {
        command.args(["-p", package]);
    }
    command.env("PROPTEST_CASES", CASES).env("PROPTEST_RNG_SEED", round.number.to_string());
    Ok(command)
}

/// Every decoder, on made-up input.
fn fuzz(round: Round) -> Result<Command> {
    let mut command = cargo(&["run", "--release", "-p", "chio-testkit", "--bin", "fuzz", "--"]);
    command.args(["--seconds", FUZZ_SECONDS, "--seed", &round.number.to_string()]);
    Ok(command)
}

/// Where changes to the code are tried, and what may notice them: tests of these packages, of these
/// kinds.
struct Mutated {
    files: &'static str,
    packages: &'static [&'static str],
    tests: &'static [&'static str],
}

const MUTATED: &[Mutated] = &[
    Mutated {
        files: "crates/kernel/**",
        packages: &["chio-kernel"],
        tests: &["--lib", "--test", "road"],
    },
    Mutated {
        files: "crates/core/**",
        packages: &["chio-core", "chio-kernel"],
        tests: &["--lib", "--tests"],
    },
    Mutated { files: "crates/policy/**", packages: &["chio-policy"], tests: &["--lib", "--tests"] },
    Mutated {
        files: "crates/cli/**",
        packages: &["chio-cli"],
        tests: &["--bins", "--test", "hosted", "--test", "mcp", "--test", "native"],
    },
];

/// Changes to the code that a test has to notice, where `.cargo/mutants.toml` says: a part of them in
/// each round, so that all rounds are all of them. What was missed is in the folder of the round.
///
/// They are made in a work tree of its own that all rounds share, built where everything is built,
/// so that each is compiled as any small change is.
fn mutants(round: Round) -> Result<Command> {
    let root = tree::root();
    let program = root.join(TOOLS).join("bin").join(MUTANTS);
    if !program.is_file() {
        say!("installing {MUTANTS} {MUTANTS_VERSION} in {TOOLS}");
        let words = ["install", MUTANTS, "--locked", "--version", MUTANTS_VERSION, "--root", TOOLS];
        if outcome(cargo(&words))? != Outcome::Passed {
            bail!("{MUTANTS} could not be installed");
        }
    }
    let (mutated, shard) = share(round)?;
    let results = root.join(format!("{FOLDER}/mutants-{}-of-{}", round.number, round.of));
    fs::create_dir_all(&results)?;
    let work = work_tree()?;
    let mut command =
        command(&program.to_string_lossy(), &["mutants", "--workspace", "--in-place"]);
    command.args(["--file", mutated.files, "--shard", &shard, "--output"]).arg(&results);
    for package in mutated.packages {
        command.args(["--test-package", package]);
    }
    command.arg("--").args(mutated.tests).current_dir(&work);
    command.env("CARGO_TARGET_DIR", root.join("target")).env("CARGO_INCREMENTAL", "1");
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    Ok(command)
}

/// What a round changes, and which part of that.
fn share(Round { number, of }: Round) -> Result<(&'static Mutated, String)> {
    let kinds = MUTATED.len();
    let Some(mutated) = MUTATED.get(number % kinds).filter(|_| of >= kinds) else {
        bail!(Usage(format!("`mutants` needs {kinds} rounds or more")));
    };
    let parts = (of - number % kinds).div_ceil(kinds);
    Ok((mutated, format!("{}/{parts}", number / kinds)))
}

/// The work tree for changes, as the commit has it.
fn work_tree() -> Result<PathBuf> {
    let tree = tree::root().join(FOLDER).join("tree");
    let path = tree.to_string_lossy();
    let words: &[&str] = if tree.join(".git").exists() {
        &["-C", &path, "checkout", "--quiet", "--force", "--detach"]
    } else {
        &["worktree", "add", "--quiet", "--force", "--detach", &path]
    };
    let commit = read(command("git", &["rev-parse", "HEAD"]))?;
    let mut checkout = command("git", words);
    checkout.arg(commit.trim());
    if outcome(checkout)? != Outcome::Passed {
        bail!("the commit could not be checked out in `{FOLDER}/tree`");
    }
    Ok(tree)
}

/// What a command line asks for.
#[derive(Debug)]
struct Wanted {
    parts: Vec<&'static str>,
    rounds: usize,
    shard: Shard,
}

impl Wanted {
    fn read(arguments: &[String]) -> Result<Self> {
        let known: Vec<&'static str> = PARTS.iter().map(|part| part.name).collect();
        let mut wanted = Self { parts: Vec::new(), rounds: ROUNDS, shard: Shard::default() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().map_or("", String::as_str);
            match argument.as_str() {
                "--shard" => wanted.shard = value().parse()?,
                "--rounds" => {
                    let text = value();
                    wanted.rounds = text.parse().map_err(|_| {
                        Usage(format!("expected a number of rounds, found `{text}`"))
                    })?;
                }
                name => {
                    let part = known.iter().find(|part| **part == name);
                    let unknown = || {
                        let known = known.join(", ");
                        Usage(format!(
                            "unknown argument `{name}`, expected {known}, --rounds, --shard"
                        ))
                    };
                    wanted.parts.push(part.ok_or_else(unknown)?);
                }
            }
        }
        if wanted.parts.is_empty() {
            wanted.parts = known;
        }
        Ok(wanted)
    }
}

/// The rounds that have passed at this commit, in a file.
struct Passed {
    file: PathBuf,
    known: HashSet<String>,
}

impl Passed {
    fn at(commit: &str) -> Result<Self> {
        let folder = tree::root().join(FOLDER);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make `{FOLDER}`"))?;
        let file = folder.join(format!("{commit}.txt"));
        let known = fs::read_to_string(&file).unwrap_or_default();
        Ok(Self { file, known: known.lines().map(str::to_owned).collect() })
    }

    fn add(&mut self, round: String) -> Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.file)?;
        writeln!(file, "{round}").context("cannot note that a round has passed")?;
        self.known.insert(round);
        Ok(())
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let Wanted { parts, rounds, shard } = Wanted::read(arguments)?;
    let commit = read(command("git", &["describe", "--always", "--dirty", "--abbrev=12"]))?;
    let mut passed = Passed::at(commit.trim())?;
    let mut failed = Vec::new();
    for number in (0..rounds).filter(|round| shard.has(*round)) {
        for part in PARTS.iter().filter(|part| parts.contains(&part.name)) {
            let name = format!("{} {number} of {rounds}", part.name);
            if passed.known.contains(&name) {
                say!("== {name}: passed before");
                continue;
            }
            say!("\n== {name}");
            match outcome((part.command)(Round { number, of: rounds })?)? {
                Outcome::Passed => passed.add(name)?,
                _ => failed.push(name),
            }
        }
    }
    for round in &failed {
        say!("failed: {round}");
    }
    say!("{} rounds have passed at this commit, {} failed now", passed.known.len(), failed.len());
    Ok(failed.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{MUTATED, Mutated, PARTS, ROUNDS, Round, Wanted, share};
    use crate::Usage;

    fn wanted(line: &str) -> anyhow::Result<Wanted> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Wanted::read(&words)
    }

    #[test]
    fn all_parts_run_unless_some_are_named() {
        let all = wanted("").unwrap();
        assert_eq!((all.parts.len(), all.rounds), (PARTS.len(), ROUNDS));
        let some = wanted("crash --rounds 7 --shard 1/4 fuzz").unwrap();
        assert_eq!((some.parts, some.rounds), (vec!["crash", "fuzz"], 7));
        assert_eq!(some.shard.to_string(), "1/4");
    }

    #[test]
    fn the_rounds_of_mutants_are_all_of_them_each_once() {
        for of in [4, 6, 100] {
            let mut parts: Vec<(&str, String)> = (0..of)
                .map(|number| share(Round { number, of }).unwrap())
                .map(|(mutated, shard)| (mutated.files, shard))
                .collect();
            parts.sort();
            parts.dedup();
            assert_eq!(parts.len(), of);
            for Mutated { files, .. } in MUTATED {
                let count = parts.iter().filter(|(of, _)| of == files).count();
                let shards = (0..count).map(|number| (*files, format!("{number}/{count}")));
                assert!(shards.into_iter().all(|shard| parts.contains(&shard)), "{files}");
            }
        }
        assert!(share(Round { number: 0, of: 3 }).is_err());
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for line in ["crashes", "--rounds", "--rounds x", "--shard 4/4", "--shard"] {
            assert!(wanted(line).unwrap_err().is::<Usage>(), "{line}");
        }
    }
}
