//! Which tasks are listed, and how a page goes on.

use serde_json::json;

use super::*;
use crate::call_report::CallReport;
use crate::record::State;

fn record(number: u64, updated_at: u64, context: &str, state: State) -> Arc<TaskRecord> {
    Arc::new(TaskRecord {
        id: format!("a2a-task-{number}"),
        context_id: Some(context.to_owned()),
        skill: String::new(),
        state,
        output: Vec::new(),
        words: Vec::new(),
        history: Vec::new(),
        report: CallReport::pending(),
        replies: false,
        updated_at,
    })
}

fn wanted(params: Value) -> Wanted {
    read(serde_json::from_value(params).unwrap()).unwrap().0
}

fn numbers(page: &Value) -> Vec<&str> {
    let tasks = page["tasks"].as_array().unwrap().iter();
    tasks.map(|task| task["id"].as_str().unwrap().rsplit('-').next().unwrap()).collect()
}

#[test]
fn pages_go_on_where_they_ended_also_when_tasks_came_at_the_same_time() {
    let records: Vec<_> =
        (1..=5).map(|number| record(number, number / 3, "c", State::Completed)).collect();
    let (mut token, mut seen) = (String::new(), Vec::new());
    for _ in 0..3 {
        let page = write(records.clone(), &wanted(json!({"pageSize": 2, "pageToken": token})))
            .into_value();
        seen.push(numbers(&page).join(""));
        token = page["nextPageToken"].as_str().unwrap().to_owned();
    }
    assert_eq!(seen, ["54", "32", "1"]);
    assert_eq!(token, "");
}

#[test]
fn only_what_is_wanted_is_listed_and_counted() {
    let records = vec![
        record(1, 10, "a", State::Completed),
        record(2, 20, "b", State::Working),
        record(3, 30, "a", State::Working),
    ];
    for (params, expected) in [
        (json!({}), "321"),
        (json!({"contextId": "a"}), "31"),
        (json!({"context_id": ""}), "321"),
        (json!({"status": "TASK_STATE_WORKING"}), "32"),
        (json!({"status": 3}), "1"),
        (json!({"status": 0}), "321"),
        (json!({"statusTimestampAfter": "1970-01-01T00:00:20Z"}), "32"),
        (json!({"contextId": "nothing"}), ""),
    ] {
        let page = write(records.clone(), &wanted(params.clone())).into_value();
        assert_eq!(numbers(&page).join(""), expected, "{params}");
        assert_eq!(page["totalSize"], expected.len());
        assert_eq!((&page["nextPageToken"], &page["pageSize"]), (&json!(""), &json!(50)));
    }
}
