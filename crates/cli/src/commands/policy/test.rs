//! `chio policy test`: whether a policy makes of calls what its author expects.

use std::path::Path;

use anyhow::{Context, Result, bail};
use chio_policy::Policy;
use chio_policy::cases::{self, Case, Cases};
use chio_policy::document::{self, Document};
use chio_policy::judge::{Decision, Step};
use chio_policy::trial::{self, Trial};
use serde_json::{Value, json};

use crate::io::Io;
use crate::outcome::Outcome;
use crate::policy_args::broken;
use crate::store_args::block_on;
use crate::table::{Row, Table};
use crate::text;

const HELP: &str = "\
Makes every call of the cases, each on a policy that has judged nothing before, and compares what
becomes of it with what is expected. Nothing is run. A file of cases:

  cases:
    - {tool: read_file, args: {path: /workspace/a.txt}, expect: allow}
    - {tool: read_file, args: {path: /workspace/.env}, expect: deny, by: forbidden-path}
    - {tool: deploy, expect: ask}

`expect` is allow, deny, ask or redact. A case may also have name, server, by (the guard), says (a
part of the reason), output, protocol, target, fidelity, depth, model, cost, schema, side_effects,
at, agent, session and repeat. A file of cases with a `policy` of its own is given alone.

Exit code 1 when something is not as expected.

Examples:
  chio policy test policy.yaml cases.yaml
  chio policy test default cases/*.yaml --json";

/// Try calls on a policy and compare with what is expected
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
#[command(override_usage = "chio policy test [OPTIONS] <POLICY> <CASES>...
       chio policy test [OPTIONS] <CASES>")]
pub(crate) struct Args {
    /// The policy, a file or a built-in one, and files of cases
    #[arg(value_name = "FILE|NAME", required = true)]
    files: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A file of cases with the policy that they are tried on.
struct Suite {
    document: Document,
    cases: Vec<Case>,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let suites = suites(args, io)?;
    let mut results = Vec::new();
    for suite in &suites {
        for case in &suite.cases {
            let tried = block_on(async { Ok(trial::run(case, &suite.document).await) })?;
            let tried = tried.map_err(|problems| broken(io, "the policy", &problems))?;
            results.push((case, tried));
        }
    }
    let failed = results.iter().filter(|(_, trial)| trial.problem.is_some()).count();
    if args.json {
        let rows: Vec<Value> = results.iter().map(|(case, trial)| row(case, trial)).collect();
        io.json(&json!({"passed": results.len() - failed, "failed": failed, "cases": rows}))?;
        return Ok(Outcome::of(failed == 0));
    }
    for (case, trial) in &results {
        show(io, case, trial)?;
    }
    let total = text::count(results.len(), "case");
    match failed {
        0 => io.say(format_args!("{total}, all as expected"))?,
        _ => io.say(format_args!("{total}, {failed} NOT as expected"))?,
    }
    Ok(Outcome::of(failed == 0))
}

fn suites(args: &Args, io: &mut Io<'_>) -> Result<Vec<Suite>> {
    let Some((first, files)) = args.files.split_first() else { bail!("no cases") };
    if files.is_empty() {
        return own_policy(io, first).map(|suite| vec![suite]);
    }
    let document = document::load(first, io.folder).map_err(|it| broken(io, first, &it))?;
    // What guards have against it is wrong for every case; it is told once, and before any.
    let policy = Policy::of_document(document.clone(), &std::sync::Arc::default());
    policy.map_err(|problems| broken(io, first, &problems))?;
    let mut suites = Vec::new();
    for file in files {
        let read = read(io, file)?;
        if read.policy.is_some() {
            bail!(
                "`{file}` has a `policy` of its own, and another is given: leave one of them out"
            );
        }
        suites.push(Suite { document: document.clone(), cases: read.cases });
    }
    Ok(suites)
}

/// A file of cases that has its policy in it.
fn own_policy(io: &mut Io<'_>, file: &str) -> Result<Suite> {
    let read = read(io, file)?;
    let Some(node) = read.policy else {
        bail!(
            "expected a policy and files of cases, or cases with a `policy` of their own, found \
             only cases: `chio policy test POLICY {file}`"
        );
    };
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let base = io.folder.join(folder);
    let document = match &node.kind {
        chio_yaml::NodeKind::Text(name) => document::load(name, &base),
        _ => document::of_node(node, &base),
    };
    let document = document.map_err(|problems| broken(io, file, &problems))?;
    Ok(Suite { document, cases: read.cases })
}

fn read(io: &mut Io<'_>, file: &str) -> Result<Cases> {
    let bytes = io.read(file.as_ref())?;
    let text = String::from_utf8(bytes).with_context(|| format!("`{file}` is not UTF-8 text"))?;
    cases::read(&text, file).map_err(|problems| broken(io, file, &problems))
}

/// A result for people; there is nothing to say about one that is as expected.
fn show(io: &mut Io<'_>, case: &Case, trial: &Trial) -> Result<()> {
    let Some(problem) = &trial.problem else { return Ok(()) };
    let place = &case.place;
    io.say(format_args!("{}:{}: {}", place.file, place.line, case.name))?;
    io.say(format_args!("    {problem}"))?;
    let matter = || trial.judged.steps.iter().filter(|step| step.decision != Decision::Allow);
    // The one that decides has been told.
    if matter().count() > 1 {
        say_steps(io, matter())?;
    }
    Ok(())
}

/// What guards say.
pub(super) fn say_steps<'a>(io: &mut Io<'_>, steps: impl Iterator<Item = &'a Step>) -> Result<()> {
    let row = |step: &Step| {
        let about = if step.about_output { " (output)" } else { "" };
        let why = step.reason.as_ref().or(step.evidence.as_ref());
        let cells = vec![step.decision.word().to_owned(), format!("{}{about}", step.guard)];
        Row { cells, note: why.cloned().unwrap_or_default() }
    };
    let rows: Vec<Row> = steps.map(row).collect();
    Table::of(&["SAYS", "GUARD"], 0, &rows).write(io, rows)
}

fn row(case: &Case, trial: &Trial) -> Value {
    let judged = &trial.judged;
    json!({
        "file": *case.place.file,
        "line": case.place.line,
        "name": case.name,
        "expected": {"decision": case.expect.word(), "by": case.by, "says": case.says},
        "found": {"decision": judged.decision.word(), "by": judged.by, "reason": judged.reason},
        "passed": trial.problem.is_none(),
        "problem": trial.problem,
    })
}
