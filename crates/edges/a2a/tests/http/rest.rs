//! HTTP+JSON.

use serde_json::{Value, json};

use crate::world::{Ask, Beginning, World, message, receipt, until};

async fn world() -> World {
    let with_rest =
        Beginning { options: |options| options.http_json = true, ..Beginning::default() };
    with_rest.start().await
}

fn ask(world: &World, method: &'static str, path: &str) -> Ask {
    world.ask(method, &format!("/rest/{path}")).with("A2A-Version", "1.0")
}

#[tokio::test]
async fn every_operation_has_its_path() {
    let world = world().await;
    let sent = ask(&world, "POST", "message:send").json(&message("hi")).send().await.is(200);
    assert_eq!(sent.header("content-type"), Some("application/json"));
    let task = sent.value()["task"].clone();
    assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "echo: hi"}]));
    receipt(&task);
    let id = task["id"].as_str().unwrap();
    let got = ask(&world, "GET", &format!("tasks/{id}")).send().await.is(200).value();
    assert_eq!(got, task);
    let short = ask(&world, "GET", &format!("tasks/{id}?historyLength=0")).send().await.value();
    assert!(short.get("history").is_none());
    let listed = ask(&world, "GET", "tasks?pageSize=1&includeArtifacts=true").send().await.value();
    assert_eq!((&listed["totalSize"], &listed["pageSize"]), (&json!(1), &json!(1)));
    assert!(listed["tasks"][0]["artifacts"].is_array());
    let waiting = world.deferred("x").await;
    let id = waiting["id"].as_str().unwrap();
    // An empty body, and one with the id, are both known.
    let off = ask(&world, "POST", &format!("tasks/{id}:cancel")).send().await.is(200).value();
    assert_eq!(off["status"]["state"], "TASK_STATE_CANCELED");
    let again = ask(&world, "POST", &format!("tasks/{id}:cancel")).json(&json!({"id": id}));
    let error = again.send().await.is(400).value();
    assert_eq!(error["error"]["details"][0]["reason"], "TASK_NOT_CANCELABLE");
}

#[tokio::test]
async fn no_get_of_http_runs_a_tool_and_a_task_that_was_posted_runs_by_itself() {
    let world = world().await;
    let mut later = message("x");
    later["configuration"] = json!({"returnImmediately": true});
    let waiting = world.deferred("x").await;
    let path = format!("tasks/{}", waiting["id"].as_str().unwrap());
    for path in [&*path, &format!("{path}:subscribe"), "tasks", &path] {
        let answer = ask(&world, "GET", path).send().await;
        assert!(!answer.body.contains("COMPLETED"), "{}", answer.body);
    }
    assert_eq!(world.told.runs(), 0);
    assert_eq!(world.settled(&waiting["id"]).await["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(ask(&world, "GET", &path).send().await.value()["artifacts"][0]["name"], "echo");
    let begun = ask(&world, "POST", "message:send").json(&later).send().await.is(200).value();
    assert_eq!(begun["task"]["status"]["state"], "TASK_STATE_WORKING");
    until(|| world.told.runs() == 2).await;
    let path = format!("tasks/{}", begun["task"]["id"].as_str().unwrap());
    for _ in 0..3000 {
        let task = ask(&world, "GET", &path).send().await.is(200).value();
        if task["status"]["state"] == "TASK_STATE_COMPLETED" {
            assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "echo: x"}]));
            return;
        }
    }
    panic!("the task has not ended");
}

#[tokio::test]
async fn errors_say_what_they_are_in_their_status_and_reason() {
    let world = world().await;
    let info = |value: &Value| value["error"]["details"][0]["reason"].clone();
    for (method, path, status, reason) in [
        ("GET", "tasks/a2a-task-0", 404, json!("TASK_NOT_FOUND")),
        ("POST", "message:stream", 400, json!("UNSUPPORTED_OPERATION")),
        ("POST", "tasks/a2a-task-0:subscribe", 400, json!("UNSUPPORTED_OPERATION")),
        ("GET", "extendedAgentCard", 400, json!("UNSUPPORTED_OPERATION")),
        ("GET", "tasks/t/pushNotificationConfigs", 400, json!("PUSH_NOTIFICATION_NOT_SUPPORTED")),
        (
            "DELETE",
            "tasks/t/pushNotificationConfigs/c",
            400,
            json!("PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ),
        ("GET", "tasks?pageSize=0", 400, json!(null)),
        ("GET", "nothing", 404, json!(null)),
        ("POST", "tenant/message:send", 404, json!(null)),
    ] {
        let error = ask(&world, method, path).send().await.is(status).value();
        assert_eq!(error["error"]["code"], status, "{path}");
        assert_eq!(info(&error), reason, "{path}");
    }
    let post = || ask(&world, "POST", "message:send");
    post().json(&json!({})).send().await.is(400);
    post().json(&json!([])).send().await.is(400);
    post().text("x").with("Content-Type", "application/json").send().await.is(400);
    let text = post().text("x").with("Content-Type", "text/plain").send().await.is(415).value();
    assert_eq!(info(&text), "CONTENT_TYPE_NOT_SUPPORTED");
    let old = post().json(&message("x")).with("A2A-Version", "0.3").send().await.is(400).value();
    assert_eq!(info(&old), "VERSION_NOT_SUPPORTED");
    post().json(&message("x")).without("A2A-Version").send().await.is(400);
    assert_eq!(world.told.runs(), 0);
}

#[tokio::test]
async fn json_goes_by_the_name_that_the_client_knows() {
    let world = world().await;
    let post = || ask(&world, "POST", "message:send").json(&message("x"));
    let named = post().with("Content-Type", "application/a2a+json").send().await.is(200);
    assert_eq!(named.header("content-type"), Some("application/a2a+json"));
    let accepted = post().with("Accept", "application/a2a+json, application/json");
    let accepted = accepted.send().await.is(200);
    assert_eq!(accepted.header("content-type"), Some("application/a2a+json"));
}

#[tokio::test]
async fn every_mount_has_it_only_where_that_was_said() {
    let world = world().await;
    for mount in ["/strict", "/skills/echo"] {
        let ask = world.ask("POST", &format!("{mount}/rest/message:send"));
        ask.with("A2A-Version", "1.0").json(&message("x")).send().await.is(200);
    }
    for mount in ["", "/strict", "/skills/echo"] {
        let path = format!("{mount}/.well-known/agent-card.json");
        let card = world.ask("GET", &path).send().await.value();
        assert_eq!(card["supportedInterfaces"][1]["protocolBinding"], "HTTP+JSON");
        let url = format!("http://{}{mount}/rest", world.address);
        assert_eq!(card["supportedInterfaces"][1]["url"], url);
    }
    let world = World::with(&["echo"]).await;
    ask(&world, "POST", "message:send").json(&message("x")).send().await.is(404);
}
