//! Which tasks are listed, and how a page goes on.

use serde_json::json;

use super::*;
use crate::call_report::CallReport;
use crate::modes::AcceptedModes;
use crate::record::State;

fn record(number: u64, updated_at: u64, context: &str, state: State) -> Arc<TaskRecord> {
    Arc::new(TaskRecord {
        id: format!("a2a-task-{number}"),
        context_id: Some(context.to_owned()),
        skill: String::new(),
        state,
        output: Vec::new(),
        words: Vec::new(),
        accepted: AcceptedModes::All,
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
        let page = write(records.clone(), 5, &wanted(json!({"pageSize": 2, "pageToken": token})))
            .into_value();
        seen.push(numbers(&page).join(""));
        token = page["nextPageToken"].as_str().unwrap().to_owned();
    }
    assert_eq!(seen, ["54", "32", "1"]);
    assert_eq!(token, "");
}

#[test]
fn only_what_is_wanted_is_listed_and_the_store_is_asked_for_the_same() {
    let records = [
        record(1, 10, "a", State::Completed),
        record(2, 20, "b", State::Working),
        record(3, 30, "a", State::Working),
    ];
    let owner = chio_core::crypto::Keypair::from_seed(&[1; 32]).public_key().clone();
    for (params, expected, states) in [
        (json!({}), "123", None),
        (json!({"contextId": "a"}), "13", None),
        (json!({"context_id": ""}), "123", None),
        (json!({"status": "TASK_STATE_WORKING"}), "23", Some(2)),
        (json!({"status": 3}), "1", Some(1)),
        (json!({"status": 0}), "123", None),
        (json!({"status": "TASK_STATE_AUTH_REQUIRED"}), "", Some(0)),
        (json!({"statusTimestampAfter": "1970-01-01T00:00:20Z"}), "23", None),
        (json!({"contextId": "nothing"}), "", None),
    ] {
        let wanted = wanted(params.clone());
        let found: String = records
            .iter()
            .filter(|record| wanted.fits(record))
            .map(|record| record.number().to_string())
            .collect();
        assert_eq!(found, expected, "{params}");
        let query = wanted.query(&owner, 50);
        assert_eq!(query.states.map(|states| states.len()), states, "{params}");
        let context = params.get("contextId").and_then(Value::as_str);
        assert_eq!(query.context.as_deref(), context, "{params}");
        assert_eq!((query.now, query.limit, query.since % 20), (50, 51, 0), "{params}");
    }
    let after = wanted(json!({"pageToken": "p7-12"})).query(&owner, 50).after;
    assert_eq!(after, Some((7, "a2a-task-12".to_owned())));
}
