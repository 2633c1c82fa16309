//! The corpora of hostile and of ordinary calls, with the rate of each.
#![expect(clippy::print_stdout, reason = "the rates are what people read")]

use std::fs;
use std::path::PathBuf;

use chio_policy::judge::Decision;
use chio_policy::trial;

use crate::{document_of, fresh, read};

/// Corpora of calls that must come out exactly as they say.
const EXACT: &[&str] = &["paths", "shell", "patches", "network", "secrets", "rules"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors/policy")
}

/// How many cases of a corpus are to be stopped and how many to pass, and what is not as expected.
async fn counted(name: &str) -> ([usize; 2], Vec<String>) {
    let path = folder().join(format!("{name}.yaml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let cases = read(&text, name);
    let document = document_of(&cases, "default");
    let mut wrong = Vec::new();
    // One policy for all: no corpus is about what guards remember.
    let policy = fresh(&document);
    for case in &cases.cases {
        let trial = trial::run_on(case, &policy).await;
        if let Some(problem) = trial.problem {
            wrong.push(format!("{}: {}: {problem}", case.place, case.name));
        }
    }
    let passing = cases.cases.iter().filter(|case| case.expect == Decision::Allow).count();
    ([cases.cases.len() - passing, passing], wrong)
}

/// How many cases a corpus has, and what is not as expected.
async fn run(name: &str) -> (usize, Vec<String>) {
    let ([stopped, passing], wrong) = counted(name).await;
    (stopped + passing, wrong)
}

#[tokio::test]
async fn hostile_calls_are_stopped_and_ordinary_ones_pass() {
    let (mut hostile, mut benign, mut wrong) = (0, 0, Vec::new());
    for name in EXACT {
        let ([stopped, passing], found) = counted(name).await;
        let count = stopped + passing;
        println!("{name:<22} {:>4} of {count} as expected", count - found.len());
        // A corpus of hostile calls may have some that only look like it.
        hostile += stopped;
        benign += passing;
        wrong.extend(found);
        if *name == "rules" {
            continue;
        }
        let ordinary = format!("{name}-benign");
        let (count, found) = run(&ordinary).await;
        println!("{ordinary:<22} {:>4} of {count} passed", count - found.len());
        benign += count;
        wrong.extend(found);
    }
    println!("hostile {hostile}, benign {benign}, wrong {}", wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(hostile >= 300 && benign >= 300, "{hostile} hostile, {benign} benign");
}

/// Screening for injected prompts is the weakest guard: its rates are published, not perfect.
#[tokio::test]
async fn injected_prompts_are_found_at_the_published_rates() {
    let (attacks, missed) = run("injection").await;
    let (known, _) = run("injection-misses").await;
    let (quiet, alarms) = run("injection-benign").await;
    let (loud, _) = run("injection-alarms").await;
    let found = attacks - missed.len();
    let (all, texts, alarmed) = (attacks + known, quiet + loud, alarms.len() + loud);
    println!("prompt injection: {found} of {all} found, {alarmed} of {texts} false alarms");
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(alarms.is_empty(), "{alarms:#?}");
    assert!(all >= 80 && texts >= 80, "{all} attacks, {texts} texts");
}
