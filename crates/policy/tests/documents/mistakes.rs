//! Every mistake of `spec/vectors/policy/mistakes.yaml` gets exactly the message that is written
//! there.

use std::path::Path;
use std::sync::Arc;

use chio_policy::document::{self};
use chio_policy::policy::Policy;
use chio_policy::state::State;
use chio_yaml::{Key, NodeKind, Problem, Problems, Section};

const FILE: &str = "mistakes.yaml";
const TEXT: &str = include_str!("../../../../spec/vectors/policy/mistakes.yaml");

const KEYS: &[Key] = &[
    Key::new("name", "text", "required", "the mistake"),
    Key::new("document", "text", "required", "the document"),
    Key::new("problem", "text", "none", "the only problem"),
    Key::new("problems", "a list of texts", "none", "all problems"),
];

struct Mistake {
    name: String,
    document: String,
    problems: Vec<String>,
}

fn mistakes() -> Vec<Mistake> {
    let root = chio_yaml::parse(TEXT, FILE).expect("the table is YAML");
    let NodeKind::List(items) = &root.kind else { panic!("the table is a list") };
    let problems = Problems::default();
    let read = items.iter().map(|item| {
        let section = Section::new(item, "mistake", KEYS, &problems);
        let text =
            |key| section.node(key).and_then(|node| node.to_value().as_str().map(str::to_owned));
        let one = text("problem").into_iter();
        let all = section.texts("problems").into_iter().map(|item| item.text.to_owned());
        Mistake {
            name: text("name").expect("a name"),
            document: text("document").expect("a document"),
            problems: one.chain(all).collect(),
        }
    });
    let read: Vec<Mistake> = read.collect();
    assert!(problems.is_empty(), "{:?}", problems.into_sorted());
    read
}

fn problems_of(text: &str) -> Vec<Problem> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = document::of_text(text, "policy.yaml", folder);
    let made = read.and_then(|document| Policy::of_document(document, &Arc::new(State::default())));
    made.err().unwrap_or_default()
}

#[test]
fn every_mistake_gets_the_message_that_the_table_says() {
    let mistakes = mistakes();
    assert!(mistakes.len() >= 40, "only {} mistakes", mistakes.len());
    let mut wrong = String::new();
    for Mistake { name, document, problems } in &mistakes {
        let told = problems_of(document);
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        let told: Vec<&str> =
            told.iter().map(|told| told.strip_prefix("policy.yaml:").unwrap_or(told)).collect();
        if told != *problems {
            wrong += &format!("{name}\n  expected {problems:?}\n  told     {told:?}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
