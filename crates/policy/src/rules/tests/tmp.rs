//! Temporary.
use std::path::Path;
use std::sync::Arc;
use crate::document::of_node;
use crate::policy::Policy;
use crate::state::State;
use crate::{cases, trial};

#[tokio::test]
async fn tmp_all() {
    let mut wrong = Vec::new();
    let mine = ["rules", "bridge", "model-constraint", "argument-schema"];
    let samples = crate::guards::KINDS.iter().filter(|kind| mine.contains(&kind.name)).map(|kind| (kind.name, kind.samples));
    for (name, text) in samples.chain([("rules.yaml", include_str!("../../../../../spec/vectors/policy/rules.yaml"))]) {
        let cases = match cases::read(text, name) { Ok(cases) => cases, Err(p) => { wrong.push(format!("{p:#?}")); continue } };
        let document = match of_node(cases.policy.clone().unwrap(), Path::new(".")) { Ok(it) => it, Err(p) => { wrong.push(format!("{p:#?}")); continue } };
        let policy = match Policy::of_document(document, &Arc::new(State::default())) { Ok(it) => it, Err(p) => { wrong.push(format!("{p:#?}")); continue } };
        if let Err(e) = policy.proven().await { wrong.push(e.to_string()); }
        for case in &cases.cases {
            if let Some(problem) = trial::run_on(case, &policy).await.problem { wrong.push(format!("{name} {}: {problem}", case.name)); }
        }
        println!("{name}: {}", cases.cases.len());
    }
    println!("WRONG {}", wrong.join("\n"));
    assert!(wrong.is_empty());
}
