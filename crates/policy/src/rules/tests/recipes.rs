//! The recipes of `docs/policy-recipes.md`, as they stand there.

use std::path::Path;
use std::sync::Arc;

use crate::document::of_text;
use crate::policy::Policy;
use crate::state::State;
use crate::{cases, trial};

const PAGE: &str = include_str!("../../../../../docs/policy-recipes.md");

/// A heading with its documents and its cases.
struct Recipe {
    name: String,
    documents: Vec<String>,
    cases: String,
}

fn recipes() -> Vec<Recipe> {
    let parts = PAGE.split("\n### ").skip(1);
    let recipes = parts.map(|part| {
        let name = part.lines().next().unwrap().to_owned();
        let blocks = part.split("```yaml\n").skip(1);
        let blocks = blocks.map(|block| block.split("```").next().unwrap().to_owned());
        let (cases, documents): (Vec<_>, Vec<_>) = blocks.partition(|it| it.starts_with("cases:"));
        assert_eq!(cases.len(), 1, "{name}");
        Recipe { name, documents, cases: cases.concat() }
    });
    recipes.collect()
}

async fn check(recipe: &Recipe) {
    let cases = cases::read(&recipe.cases, &recipe.name).unwrap();
    assert!(cases.cases.len() >= 3, "{}", recipe.name);
    for text in &recipe.documents {
        let document = of_text(text, &recipe.name, Path::new(".")).unwrap();
        let policy = Policy::of_document(document, &Arc::new(State::default())).unwrap();
        for case in &cases.cases {
            let problem = trial::run_on(case, &policy).await.problem;
            assert_eq!(problem, None, "{}: {}\n{text}", recipe.name, case.name);
        }
    }
}

// covers: CROSS-054, CROSS-055, CROSS-056, CROSS-060
#[tokio::test]
async fn every_recipe_does_what_it_says() {
    let recipes = recipes();
    for (name, ways) in [
        ("Narrow the targets of a caller", 2),
        ("Require prior attenuation", 2),
        ("Disallow projected protocols", 2),
        ("Refuse adapted fidelity", 2),
    ] {
        let recipe = recipes.iter().find(|recipe| recipe.name == name);
        assert_eq!(recipe.map(|recipe| recipe.documents.len()), Some(ways), "{name}");
    }
    for recipe in &recipes {
        check(recipe).await;
    }
}
