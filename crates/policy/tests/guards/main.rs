//! Every guard keeps the same promises, and every corpus comes out as it should.
#![cfg(test)]

mod contract;
mod corpora;
mod counting;
mod reference;
mod rulesets;

use std::path::Path;
use std::sync::Arc;

use chio_policy::Policy;
use chio_policy::cases::{self, Cases};
use chio_policy::document::{self, Document};
use chio_policy::state::State;
use chio_yaml::NodeKind;

/// The document that cases are for: the one they bring along, or else the one of this name.
fn document_of(cases: &Cases, otherwise: &str) -> Document {
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = match &cases.policy {
        Some(node) => match &node.kind {
            NodeKind::Text(name) => document::load(name, base),
            _ => document::of_node(node.clone(), base),
        },
        None => document::load(otherwise, base),
    };
    read.unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// A document with one guard alone, and calls with what comes of them, as YAML.
fn samples(guard: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guards/samples");
    std::fs::read_to_string(folder.join(format!("{guard}.yaml"))).unwrap()
}

fn read(text: &str, file: &str) -> Cases {
    cases::read(text, file).unwrap_or_else(|problems| panic!("{file}: {problems:#?}"))
}

/// A policy that has judged nothing yet.
fn fresh(document: &Document) -> Policy {
    let policy = Policy::of_document(document.clone(), &Arc::new(State::default()));
    policy.unwrap_or_else(|problems| panic!("{problems:#?}"))
}
