//! What every guard promises, over the list of all guards.

use std::collections::BTreeSet;

use chio_policy::guards::KINDS;
use chio_policy::judge::Decision;
use chio_policy::trial;

use crate::{document_of, fresh, read, samples};

#[tokio::test]
async fn every_guard_does_with_its_samples_as_they_say() {
    for kind in KINDS {
        let cases = read(&samples(kind.name), kind.name);
        let document = document_of(&cases, "the samples bring their own");
        let (mut benign, mut hostile) = (0, 0);
        for case in &cases.cases {
            let trial = trial::run(case, &document).await.unwrap();
            let problem = trial.problem.unwrap_or_default();
            assert_eq!(problem, "", "{}: {}", kind.name, case.name);
            match case.expect {
                Decision::Allow => benign += 1,
                _ => {
                    assert_eq!(trial.judged.by.as_deref(), Some(kind.name), "{}", case.name);
                    hostile += 1;
                }
            }
            assert!(
                trial.judged.steps.iter().any(|step| step.guard == kind.name),
                "{} is not in its own explanation",
                kind.name
            );
        }
        assert!(benign >= 2 && hostile >= 4, "{}: {benign} benign, {hostile} hostile", kind.name);
    }
}

#[tokio::test]
async fn every_guard_says_the_same_of_the_same_call() {
    for kind in KINDS {
        let cases = read(&samples(kind.name), kind.name);
        let document = document_of(&cases, "the samples bring their own");
        for case in &cases.cases {
            let once = trial::run(case, &document).await.unwrap();
            let again = trial::run(case, &document).await.unwrap();
            assert_eq!(once.judged, again.judged, "{}: {}", kind.name, case.name);
        }
    }
}

#[tokio::test]
async fn no_guard_repeats_what_it_was_shown() {
    // Texts in the arguments of a sample that are long enough to be distinct from ordinary words.
    for kind in KINDS {
        let cases = read(&samples(kind.name), kind.name);
        let document = document_of(&cases, "the samples bring their own");
        for case in &cases.cases {
            let judged = trial::run(case, &document).await.unwrap().judged;
            let said: String = judged
                .steps
                .iter()
                .flat_map(|step| [step.reason.clone(), step.evidence.clone()])
                .flatten()
                .collect();
            let mut texts = Vec::new();
            collect(&case.call.arguments, &mut texts);
            for text in texts.iter().filter(|text| text.len() >= 12) {
                assert!(!said.contains(*text), "{}: {}: repeats {text}", kind.name, case.name);
            }
        }
    }
}

fn collect<'a>(value: &'a serde_json::Value, texts: &mut Vec<&'a str>) {
    match value {
        serde_json::Value::String(text) => texts.push(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        serde_json::Value::Object(members) => {
            members.values().for_each(|item| collect(item, texts));
        }
        _ => {}
    }
}

#[tokio::test]
async fn every_guard_stands_in_the_way_of_what_it_forbids() {
    for kind in KINDS {
        let cases = read(&samples(kind.name), kind.name);
        let document = document_of(&cases, "the samples bring their own");
        fresh(&document).proven().await.unwrap();
    }
}

#[test]
fn names_and_sections_are_told_apart_and_described() {
    let names: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
    let sections: BTreeSet<&str> = KINDS.iter().map(|kind| kind.section).collect();
    assert_eq!((names.len(), sections.len()), (KINDS.len(), KINDS.len()));
    for kind in KINDS {
        assert!(kind.about.ends_with('.') && kind.about.len() > 40, "{}", kind.name);
        let can_be_off = kind.keys.iter().any(|key| key.name == "enabled");
        assert_eq!(can_be_off, kind.name != "own-files", "{}", kind.name);
        for key in kind.keys {
            assert!(!key.about.is_empty() && !key.expects.is_empty(), "{} {}", kind.name, key.name);
        }
    }
}

#[tokio::test]
async fn a_guard_that_is_switched_off_is_not_asked() {
    for kind in KINDS.iter().filter(|kind| kind.name != "own-files") {
        let (top, rest) = kind.section.split_once('.').unwrap();
        let inner = rest
            .split('.')
            .rev()
            .fold("{enabled: false}".to_owned(), |inner, name| format!("{{{name}: {inner}}}"));
        let text = format!(
            "policy: {{hushspec: \"0.1.0\", {top}: {inner}}}\ncases: [{{tool: t, expect: allow}}]"
        );
        let cases = read(&text, kind.name);
        let document = document_of(&cases, "the samples bring their own");
        let judged = fresh(&document).judge(&cases.cases[0].call).await;
        let asked = judged.steps.iter().any(|step| step.guard == kind.name);
        // This one denies what no policy allows, whatever a document says.
        assert_eq!(asked, kind.name == "tool-access", "{}", kind.name);
        assert_eq!(judged.decision, Decision::Allow, "{}", kind.name);
    }
}
