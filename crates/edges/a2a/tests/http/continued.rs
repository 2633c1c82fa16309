//! Tasks that ask for more, and contexts.

use chio_store::StoreUrl;
use chio_testkit::process::Folder;
use serde_json::{Value, json};

use crate::world::{BOB, Beginning, World, message, receipt, unique};

fn to_task(id: &str, task: &Value, context: Option<&str>) -> Value {
    let mut params = message("the second");
    params["message"]["messageId"] = json!(id);
    params["message"]["taskId"] = task["id"].clone();
    if let Some(context) = context {
        params["message"]["contextId"] = json!(context);
    }
    params
}

async fn asking(world: &World) -> Value {
    let mut params = message("go");
    params["message"]["messageId"] = json!(unique("tck-input-required"));
    world.rpc("SendMessage", params).send().await.result()["task"].clone()
}

#[tokio::test]
async fn a_task_that_asks_for_more_goes_on_with_the_next_message() {
    let world = World::with(&["kit"]).await;
    let task = asking(&world).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(task["status"]["message"]["parts"], json!([{"text": "Which one?"}]));
    let first = receipt(&task);
    let other = to_task("m-2", &task, Some("another"));
    world.rpc("SendMessage", other).send().await.error(-32602);
    let ask = world.rpc("SendMessage", to_task("m-2", &task, None));
    let done = ask.send().await.result()["task"].clone();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!((&done["id"], &done["contextId"]), (&task["id"], &task["contextId"]));
    assert_ne!(receipt(&done).id, first.id, "a call of its own");
    let said: Vec<&str> = done["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["parts"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["go", "Which one?", "the second"]);
    assert_eq!(world.get(&task["id"]).await, done);
    let context = world.told.last().1.unwrap();
    assert_eq!((&context["taskId"], &context["messageId"]), (&task["id"], &json!("m-2")));
    world.rpc("SendMessage", to_task("m-3", &task, None)).send().await.error(-32004);
}

#[tokio::test]
async fn a_task_that_asks_for_more_can_be_cancelled() {
    let world = World::with(&["kit"]).await;
    let task = asking(&world).await;
    let off = world.rpc("CancelTask", json!({"id": task["id"]})).send().await.result();
    assert_eq!(off["status"]["state"], "TASK_STATE_CANCELED");
    world.rpc("CancelTask", json!({"id": task["id"]})).send().await.error(-32002);
    world.rpc("SendMessage", to_task("m-2", &task, None)).send().await.error(-32004);
}

#[tokio::test]
async fn an_answer_that_is_denied_is_rejected_also_when_it_is_for_later() {
    let world = World::with(&["kit"]).await;
    for at_once in [false, true] {
        let task = asking(&world).await;
        world.kernel.emergency_stop("fire").await.unwrap();
        let mut params = to_task("m-2", &task, None);
        params["configuration"] = json!({"returnImmediately": at_once});
        let denied = world.rpc("SendMessage", params).send().await.result()["task"].clone();
        assert_eq!(denied["status"]["state"], "TASK_STATE_REJECTED", "{at_once}");
        assert_eq!(denied["id"], task["id"]);
        assert_eq!(denied["metadata"]["chio"]["decision"], "deny");
        world.kernel.resume().await.unwrap();
    }
}

#[tokio::test]
async fn a_context_is_kept_or_made_and_an_unknown_task_is_not_there() {
    let world = World::with(&["echo"]).await;
    let mut own = message("x");
    own["message"]["contextId"] = json!("mine");
    let task = world.rpc("SendMessage", own).send().await.result()["task"].clone();
    assert_eq!(task["contextId"], "mine");
    let (one, other) = (world.task("x").await, world.task("x").await);
    assert!(!one["contextId"].as_str().unwrap().is_empty());
    assert_ne!(one["contextId"], other["contextId"]);
    let unknown = to_task("m", &json!({"id": "a2a-task-0"}), None);
    world.rpc("SendMessage", unknown).send().await.error(-32001);
    world.rpc("SendMessage", to_task("m", &one, None)).send().await.error(-32004);
}

#[tokio::test]
async fn a_task_that_ran_later_and_asks_for_more_goes_on_too() {
    let world = World::with(&["kit"]).await;
    let waiting = world.deferred("go").await;
    world.rpc("SendMessage", to_task("m-2", &waiting, None)).send().await.error(-32004);
    world.rpc("CancelTask", json!({"id": waiting["id"]})).send().await.result();
    let mut params = message("go");
    params["message"]["messageId"] = json!(unique("tck-input-required"));
    params["configuration"] = json!({"returnImmediately": true});
    let begun = world.rpc("SendMessage", params).send().await.result()["task"].clone();
    let asks = world.settled(&begun["id"]).await;
    assert_eq!(asks["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let ask = world.rpc("SendMessage", to_task("m-2", &begun, None));
    let done = ask.send().await.result()["task"].clone();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!((&done["id"], &done["contextId"]), (&begun["id"], &begun["contextId"]));
    assert_eq!(world.get(&begun["id"]).await, done);
    let working = json!({"status": "TASK_STATE_COMPLETED"});
    let listed = world.rpc("ListTasks", working).send().await.result();
    assert_eq!(listed["totalSize"], 1, "one task, in one state");
    assert_eq!(listed["tasks"][0]["status"], done["status"]);
}

#[tokio::test]
async fn the_same_answer_is_given_once() {
    let world = World::with(&["kit"]).await;
    let task = asking(&world).await;
    let send = || world.rpc("SendMessage", to_task("m-2", &task, None)).send();
    let (one, other) = tokio::join!(send(), send());
    assert_eq!(one.result(), other.result());
    let again = send().await.result()["task"].clone();
    assert_eq!(again["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(world.told.runs(), 2);
}

#[tokio::test]
async fn a_question_stands_when_an_answer_to_it_cannot_be_taken() {
    let few = Beginning {
        servers: vec![("srv", vec!["kit"])],
        options: |options| options.limits.body_bytes = 16 << 20,
        ..Beginning::default()
    };
    let world = few.start().await;
    let task = asking(&world).await;
    let mut large = to_task("m-2", &task, None);
    large["message"]["parts"] = json!([{"text": "x".repeat(6 << 20)}]);
    let refused = world.rpc("SendMessage", large).send().await.error(-32602);
    assert!(refused["message"].as_str().unwrap().contains("too large"), "{refused}");
    assert_eq!(world.get(&task["id"]).await["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let done = world.rpc("SendMessage", to_task("m-3", &task, None)).send().await.result();
    assert_eq!(done["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn one_of_two_messages_to_a_task_is_taken() {
    let world = World::with(&["kit"]).await;
    let task = asking(&world).await;
    let send = |id: &str| world.rpc("SendMessage", to_task(id, &task, None)).send();
    let (one, other) = tokio::join!(send("m-2"), send("m-3"));
    let taken = [one, other].iter().filter(|it| it.value().get("result").is_some()).count();
    assert_eq!((taken, world.told.runs()), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_two_messages_to_a_task_is_taken_when_one_is_for_later() {
    let folder = Folder::new();
    let url = StoreUrl::Sqlite(folder.path("s"));
    let servers = vec![("srv", vec!["kit"])];
    let world = Beginning { url, servers, ..Beginning::default() }.start().await;
    for round in 0..40 {
        let task = asking(&world).await;
        let send = |at_once: bool| {
            let mut params = to_task(&unique("m"), &task, None);
            params["configuration"] = json!({"returnImmediately": at_once});
            let ask = world.rpc("SendMessage", params);
            // Each way round, a little apart.
            let pause = if at_once == (round % 2 == 0) { 0 } else { round / 2 };
            async move {
                tokio::time::sleep(std::time::Duration::from_micros(100 * pause)).await;
                ask.send().await
            }
        };
        let before = world.told.runs();
        let (one, other) = tokio::join!(send(true), send(false));
        let taken = [one, other].iter().filter(|it| it.value().get("result").is_some()).count();
        world.settled(&task["id"]).await;
        assert_eq!((taken, world.told.runs() - before), (1, 1), "round {round}");
    }
}

#[tokio::test]
async fn what_stands_beside_a_message_is_in_no_history() {
    let world = World::with(&["echo"]).await;
    let token = world.token(crate::world::ALICE, "cap-own");
    let mut params = message("x");
    params["message"]["metadata"] = json!({"chio": {"capability": token}});
    let task = world.rpc("SendMessage", params).send().await.result()["task"].clone();
    assert_eq!(task["history"][0]["parts"], json!([{"text": "x"}]));
    assert!(!task["history"].to_string().contains("signature"), "{task}");
}

#[tokio::test]
async fn a_context_belongs_to_the_caller_who_named_it_first_or_was_given_it() {
    let world = World::with(&["echo"]).await;
    let bob = serde_json::to_string(&world.token(BOB, "cap-b")).unwrap();
    let within = |context: &Value| {
        let mut params = message("x");
        params["message"]["contextId"] = context.clone();
        world.rpc("SendMessage", params)
    };
    let given = world.task("hello").await["contextId"].clone();
    let named = json!("ctx-of-alice");
    within(&named).send().await.result();
    for context in [&given, &named] {
        let error = within(context).with("X-Chio-Capability", &bob).send().await.error(-32602);
        assert_eq!(error["message"], "there is no such `contextId` for this caller");
        let task = within(context).send().await.result()["task"].clone();
        assert_eq!(task["contextId"], *context, "it is still hers");
    }
    assert_eq!(world.told.runs(), 4, "nothing was run for another one");
    let own = json!("ctx-of-bob");
    within(&own).with("X-Chio-Capability", &bob).send().await.result();
    within(&own).send().await.error(-32602);
}

#[tokio::test]
async fn a_message_refers_to_tasks_of_its_caller_alone() {
    let world = World::with(&["echo"]).await;
    let bob = serde_json::to_string(&world.token(BOB, "cap-b")).unwrap();
    let waiting = world.deferred("later").await;
    let task = world.task("hello").await;
    let about = |ids: Vec<Value>| {
        let mut params = message("x");
        params["message"]["referenceTaskIds"] = json!(ids);
        world.rpc("SendMessage", params)
    };
    for id in [&task["id"], &waiting["id"], &json!("a2a-task-0")] {
        about(vec![id.clone()]).with("X-Chio-Capability", &bob).send().await.error(-32001);
    }
    about(vec![task["id"].clone(), json!("a2a-task-0")]).send().await.error(-32001);
    about(vec![task["id"].clone(); 33]).send().await.error(-32602);
    assert_eq!(world.told.runs(), 1, "nothing was run for them");
    about(vec![task["id"].clone(), waiting["id"].clone()]).send().await.result();
}
