//! Tasks of A2A agents that came to nothing: the call went well, and what it was for did not.

use serde_json::Value;

/// The states in which an agent has not done what it was asked for.
const FAILED: [&str; 2] = ["TASK_STATE_FAILED", "TASK_STATE_REJECTED"];

/// What an agent says about its task that failed or that it did not take on, when a result is such a
/// task.
#[must_use]
pub fn failed_task(result: &Value) -> Option<Vec<&str>> {
    let status = result.get("task")?.get("status")?;
    let state = status.get("state")?.as_str()?;
    if !FAILED.contains(&state) {
        return None;
    }
    let parts = status.pointer("/message/parts").and_then(Value::as_array);
    let texts = parts.into_iter().flatten().filter_map(|part| part.get("text")?.as_str());
    Some(texts.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_task_that_failed_or_was_not_taken_on_is_one() {
        let parts = json!([{"text": "no"}, {"data": {}}, {"text": "way"}]);
        let failed = |state: &str| json!({"task": {"id": "t", "status": {"state": state, "message": {"parts": parts}}}});
        for (result, words) in [
            (failed("TASK_STATE_FAILED"), Some(vec!["no", "way"])),
            (failed("TASK_STATE_REJECTED"), Some(vec!["no", "way"])),
            (json!({"task": {"status": {"state": "TASK_STATE_FAILED"}}}), Some(vec![])),
            (failed("TASK_STATE_COMPLETED"), None),
            (failed("TASK_STATE_CANCELED"), None),
            (json!({"task": {"status": "TASK_STATE_FAILED"}}), None),
            (json!({"status": {"state": "TASK_STATE_FAILED"}}), None),
            (json!("TASK_STATE_FAILED"), None),
        ] {
            assert_eq!(failed_task(&result), words, "{result}");
        }
    }
}
