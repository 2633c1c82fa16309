//! Places in documents, for scripts.

use chio_yaml::Problem;
use serde_json::{Value, json};

/// What `--json` prints of something that is wrong, or may surprise.
pub(super) fn document(problem: &Problem) -> Value {
    let place = &problem.place;
    json!({
        "file": *place.file, "line": place.line, "column": place.column,
        "message": problem.message,
    })
}

/// As [`document`], of all of them.
pub(super) fn documents(problems: &[Problem]) -> Vec<Value> {
    problems.iter().map(document).collect()
}
