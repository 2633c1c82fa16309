//! The registry by itself: bounds, bindings, and files that several share.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::{Bound, MAX_TASKS, Registry, Rows, Seen, note};
use crate::answer::SeenTask;

/// A folder of its own, which goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("chio-a2a-registry-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("tasks.json")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn bound() -> Bound {
    Bound {
        tool_name: "research".to_owned(),
        server_id: "a2a:a.example".to_owned(),
        interface_url: "https://a.example/rpc".to_owned(),
        protocol_binding: "JSONRPC".to_owned(),
        tenant: Some("t".to_owned()),
        partner: "p".to_owned(),
        subject: Some("s".to_owned()),
    }
}

fn seen_task(id: &str, state: Option<&str>) -> SeenTask {
    SeenTask { task_id: id.to_owned(), state: state.map(str::to_owned) }
}

fn others() -> Vec<(&'static str, Bound)> {
    let text = || "other".to_owned();
    vec![
        ("tool", Bound { tool_name: text(), ..bound() }),
        ("server", Bound { server_id: text(), ..bound() }),
        ("interface", Bound { interface_url: text(), ..bound() }),
        ("binding", Bound { protocol_binding: text(), ..bound() }),
        ("tenant", Bound { tenant: None, ..bound() }),
        ("partner", Bound { partner: text(), ..bound() }),
        ("caller", Bound { subject: None, ..bound() }),
    ]
}

// covers: A2A-069, A2A-070
#[tokio::test]
async fn a_task_is_for_what_it_was_recorded_for_and_nothing_else() {
    let folder = Folder::new("bound");
    for path in [None, Some(folder.file())] {
        let registry = Registry::open(path).unwrap();
        assert!(registry.check("1", &bound()).await.is_err(), "never recorded");
        registry.record(seen_task("1", None), bound(), Seen::SendMessage, 5).await.unwrap();
        registry.check("1", &bound()).await.unwrap();
        for (what, other) in others() {
            let message = registry.check("1", &other).await.unwrap_err().to_string();
            assert!(message.ends_with(&format!("another {what}")), "{message}");
            let again = registry.record(seen_task("1", None), other, Seen::GetTask, 6).await;
            assert!(again.unwrap_err().to_string().ends_with(&format!("another {what}")));
        }
        registry.check("1", &bound()).await.unwrap();
    }
}

// covers: A2A-067, A2A-068
#[tokio::test]
async fn a_file_keeps_what_is_known_of_each_task() {
    let folder = Folder::new("keeps");
    let registry = Registry::open(Some(folder.file())).unwrap();
    let state = Some("TASK_STATE_WORKING");
    registry.record(seen_task("1", state), bound(), Seen::SendMessage, 5).await.unwrap();
    registry.record(seen_task("1", None), bound(), Seen::StreamEvent, 7).await.unwrap();
    let done = Some("TASK_STATE_COMPLETED");
    registry.record(seen_task("1", done), bound(), Seen::GetTask, 9).await.unwrap();
    // One that is over is written soon, and at the latest with the end.
    drop(registry);
    let text = std::fs::read_to_string(folder.file()).unwrap();
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!({
        "version": "chio.a2a-task-registry.v1",
        "tasks": {"1": {
            "taskId": "1", "toolName": "research", "serverId": "a2a:a.example",
            "interfaceUrl": "https://a.example/rpc", "protocolBinding": "JSONRPC",
            "tenant": "t", "partner": "p", "subject": "s", "firstSeenAt": 5, "lastSeenAt": 9,
            "lastState": "TASK_STATE_COMPLETED", "lastSource": "get_task",
        }},
    });
    assert_eq!(found, expected);
    let mode = std::fs::metadata(folder.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let names: Vec<_> = std::fs::read_dir(&folder.0).unwrap().flatten().collect();
    assert_eq!(names.len(), 2, "the file and its lock, and no drafts");
}

#[tokio::test]
async fn a_task_that_is_over_is_known_at_once_and_in_the_file_soon() {
    let folder = Folder::new("soon");
    let registry = Registry::open(Some(folder.file())).unwrap();
    let done = Some("TASK_STATE_COMPLETED");
    registry.record(seen_task("1", done), bound(), Seen::SendMessage, 5).await.unwrap();
    registry.check("1", &bound()).await.unwrap();
    let other = Registry::open(Some(folder.file())).unwrap();
    assert!(other.check("1", &bound()).await.is_err(), "it is not in the file");
    // The next that is not over takes it along.
    let works = Some("TASK_STATE_WORKING");
    registry.record(seen_task("2", works), bound(), Seen::SendMessage, 5).await.unwrap();
    other.check("1", &bound()).await.unwrap();
    registry.record(seen_task("3", done), bound(), Seen::SendMessage, 5).await.unwrap();
    while other.check("3", &bound()).await.is_err() {
        tokio::time::sleep(super::SOON / 10).await;
    }
}

#[tokio::test]
async fn adapters_that_share_a_file_lose_none_of_each_others_tasks() {
    let folder = Folder::new("shared");
    let registries: Vec<_> = (0..4).map(|_| Registry::open(Some(folder.file())).unwrap()).collect();
    let mut writing = tokio::task::JoinSet::new();
    for (number, registry) in registries.iter().enumerate() {
        for task in 0..10 {
            let (registry, id) = (registry.clone(), format!("{number}-{task}"));
            writing.spawn(async move {
                registry.record(seen_task(&id, None), bound(), Seen::SendMessage, 1).await.unwrap();
            });
        }
    }
    writing.join_all().await;
    for registry in &registries {
        for (number, task) in (0..4).flat_map(|number| (0..10).map(move |task| (number, task))) {
            registry.check(&format!("{number}-{task}"), &bound()).await.unwrap();
        }
    }
}

#[test]
fn a_damaged_file_is_an_error_and_no_empty_registry() {
    let folder = Folder::new("damaged");
    std::fs::create_dir_all(&folder.0).unwrap();
    for text in [
        "",
        "{",
        "[]",
        r#"{"version": "chio.a2a-task-registry.v2", "tasks": {}}"#,
        r#"{"version": "chio.a2a-task-registry.v1"}"#,
        r#"{"version": "chio.a2a-task-registry.v1", "tasks": {"1": {}}}"#,
        r#"{"version": "chio.a2a-task-registry.v1", "tasks": {}, "tasks": {}}"#,
    ] {
        std::fs::write(folder.file(), text).unwrap();
        let message = Registry::open(Some(folder.file())).unwrap_err().to_string();
        assert!(message.contains("cannot be understood"), "{text}: {message}");
    }
    std::fs::remove_file(folder.file()).unwrap();
    std::fs::create_dir(folder.file()).unwrap();
    assert!(Registry::open(Some(folder.file())).is_err());
}

#[test]
fn the_tasks_that_are_over_are_forgotten_first() {
    let mut rows = Rows::new();
    let mut add = |id: &str, state, now| {
        note(&mut rows, &seen_task(id, Some(state)), &bound(), Seen::SendMessage, now).unwrap();
    };
    add("running", "TASK_STATE_WORKING", 0);
    add("waiting", "TASK_STATE_INPUT_REQUIRED", 1);
    add("old", "TASK_STATE_COMPLETED", 2);
    for number in 3..MAX_TASKS {
        add(&format!("{number}"), "TASK_STATE_FAILED", 10);
    }
    add("one more", "TASK_STATE_WORKING", 11);
    assert_eq!(rows.len(), MAX_TASKS);
    assert!(!rows.contains_key("old"));
    assert!(rows.contains_key("running") && rows.contains_key("waiting"));
    let mut rows: Rows = rows.into_iter().filter(|(id, _)| id == "running").collect();
    for number in 1..=MAX_TASKS {
        let state = Some("TASK_STATE_WORKING");
        note(&mut rows, &seen_task(&format!("{number}"), state), &bound(), Seen::SendMessage, 1)
            .unwrap();
    }
    assert_eq!(rows.len(), MAX_TASKS);
    assert!(!rows.contains_key("running"), "when none is over, the oldest");
}
