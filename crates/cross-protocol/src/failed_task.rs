//! Tasks of A2A agents that came to nothing: the call went well, and what it was for did not.

use serde_json::Value;

/// What an agent says about a task that it failed or did not take on, when a result, or a chunk of
/// one, is marked as an error and tells of such a task.
#[must_use]
pub fn failed_task(result: &Value) -> Option<Vec<&str>> {
    if result.get("isError") != Some(&Value::Bool(true)) {
        return None;
    }
    let about = result.get("task").or_else(|| result.get("statusUpdate"))?;
    let parts = about.pointer("/status/message/parts").and_then(Value::as_array);
    let texts = parts.into_iter().flatten().filter_map(|part| part.get("text")?.as_str());
    Some(texts.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_task_that_is_marked_as_an_error_is_one() {
        let parts = json!([{"text": "no"}, {"data": {}}, {"text": "way"}]);
        let status = json!({"state": "TASK_STATE_FAILED", "message": {"parts": parts}});
        for (result, words) in [
            (json!({"task": {"status": status}, "isError": true}), Some(vec!["no", "way"])),
            (json!({"statusUpdate": {"status": status}, "isError": true}), Some(vec!["no", "way"])),
            (json!({"task": {"status": {}}, "isError": true}), Some(vec![])),
            (json!({"task": {"status": status}}), None),
            (json!({"task": {"status": status}, "isError": "true"}), None),
            (json!({"content": [], "isError": true}), None),
            (json!("TASK_STATE_FAILED"), None),
        ] {
            assert_eq!(failed_task(&result), words, "{result}");
        }
    }
}
