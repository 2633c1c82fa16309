//! Every operation, over both bindings, in the words of both versions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::{
    Guard, GuardInput, GuardOutcome, Outcome, Pipeline, ToolServerConnection as _, Verdict,
};
use serde_json::{Value, json};

use crate::agent::{ALL, RPC, Speaks, asked, one_task, params};
use crate::support::{begin, with_model};

const MESSAGE: &str = "Summarise the latest filings.";

// covers: A2A-004, A2A-009, A2A-038, A2A-047, A2A-048
#[tokio::test]
async fn a_message_reaches_the_agent_and_its_task_comes_back_with_a_receipt() {
    let (server, world) = with_model(RPC).await;
    let done = world.run("research", json!({"message": MESSAGE})).await;
    let expected = json!({"task": {
        "id": "task-1", "contextId": "ctx", "status": {"state": "TASK_STATE_WORKING"},
    }});
    assert_eq!(done.outcome, Outcome::Value(expected));
    assert_eq!(done.receipt.tool_name, "research");
    assert_eq!(done.receipt.tool_server, world.server_id);
    assert_eq!(world.adapter.protocol(), DiscoveryProtocol::A2a);
    assert_eq!(server.calls().len(), 1);
}

/// Lets nothing through.
struct Never;

#[async_trait::async_trait]
impl Guard for Never {
    fn name(&self) -> &str {
        "never"
    }

    async fn check(&self, _input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        Ok(Verdict::Deny("not today".to_owned()).into())
    }
}

// covers: A2A-003
#[tokio::test]
async fn a_call_that_a_guard_stops_never_reaches_the_agent() {
    let (server, world) = with_model(RPC).await;
    world.kernel.set_pipeline(Pipeline::new("hash", vec![Arc::new(Never)]));
    assert_eq!(world.failure(json!({"message": "x"})).await, "not today");
    assert!(server.calls().is_empty());
}

// covers: A2A-003
#[tokio::test]
async fn a_call_that_the_token_does_not_cover_never_reaches_the_agent() {
    let (server, world) = with_model(RPC).await;
    let request_id = world.kernel.new_request_id();
    let grant = chio_testkit::token::grant(&format!("{}/other", world.server_id));
    let (issuer, subject) = (chio_testkit::key(1), chio_testkit::key(2).public_key().clone());
    let cap =
        chio_testkit::token::token(&issuer, &subject, "cap-2", vec![grant], crate::support::NOW);
    let call = chio_kernel::ToolCall::new(
        request_id,
        cap,
        &*world.server_id,
        "research",
        json!({"message": "hi"}),
    );
    let session = chio_kernel::Session::anonymous("s", DiscoveryProtocol::Native);
    let caller = Arc::new(chio_kernel::NoCaller::new(session));
    let evaluation = world.kernel.evaluate(call, caller).await.unwrap();
    assert!(matches!(evaluation.outcome, Outcome::Denied(_)));
    assert!(server.calls().is_empty());
}

/// A send with everything in it, and what has to arrive.
fn full_send(speaks: Speaks) -> Value {
    let mut send = json!({
        "message": MESSAGE, "data": {"a": 1}, "context_id": "c1",
        "metadata": {"source": "console", "chio": {"note": "kept", "targetSkillId": "forged"}},
        "message_metadata": {"k": "v"}, "history_length": 2, "return_immediately": true,
    });
    if speaks != OLD_REST {
        send["reference_task_ids"] = json!(["task-1"]);
    }
    send
}

const OLD_REST: Speaks = Speaks { rest: true, old: true };

/// The message of the full send, as it has to arrive.
fn arrived(speaks: Speaks) -> Value {
    let data = json!({"a": 1});
    match (speaks.old, speaks.rest) {
        (false, _) => json!({
            "messageId": null, "role": "ROLE_USER", "contextId": "c1", "metadata": {"k": "v"},
            "parts": [
                {"text": MESSAGE, "mediaType": "text/plain"},
                {"data": data, "mediaType": "application/json"},
            ],
            "referenceTaskIds": ["task-1"],
        }),
        (true, false) => json!({
            "kind": "message", "messageId": null, "role": "user", "contextId": "c1",
            "metadata": {"k": "v"},
            "parts": [{"kind": "text", "text": MESSAGE}, {"kind": "data", "data": data}],
            "referenceTaskIds": ["task-1"],
        }),
        (true, true) => json!({
            "messageId": null, "role": "ROLE_USER", "contextId": "c1", "metadata": {"k": "v"},
            "content": [{"text": MESSAGE}, {"data": {"data": data}}],
        }),
    }
}

// covers: A2A-002, A2A-008, A2A-017, A2A-039, A2A-040, A2A-041, A2A-043
#[tokio::test]
async fn a_message_arrives_in_the_words_of_the_version() {
    for speaks in ALL {
        let (server, world) = with_model(speaks).await;
        begin(&world).await;
        world.value(full_send(speaks)).await;
        let seen = server.last();
        let mut params = params(&seen, speaks);
        let version = if speaks.old { "0.3" } else { "1.0" };
        assert_eq!(seen.header("a2a-version"), Some(version), "{speaks:?}");
        assert_eq!(seen.header("content-type"), Some("application/json"));
        let path = match (speaks.rest, speaks.old) {
            (false, _) => "POST /a2a",
            (true, false) => "POST /a2a/message:send",
            (true, true) => "POST /a2a/v1/message:send",
        };
        assert_eq!(seen.line(), path);
        let id = params["message"]["messageId"].take();
        assert!(id.as_str().unwrap().starts_with("chio-"), "{id}");
        assert_eq!(params["message"], arrived(speaks), "{speaks:?}");
        let flag = if speaks.old { ("blocking", false) } else { ("returnImmediately", true) };
        let configuration =
            json!({"acceptedOutputModes": ["text/plain"], "historyLength": 2, (flag.0): flag.1});
        assert_eq!(params["configuration"], configuration);
        let mut metadata = params["metadata"].take();
        assert_eq!(metadata["source"], "console");
        let chio = metadata["chio"].as_object_mut().unwrap();
        assert_eq!(chio["targetSkillId"], "research");
        assert_eq!(chio["targetSkillName"], "Research");
        assert_eq!(chio["note"], "kept");
        let mut names: Vec<&String> = params.keys().collect();
        names.sort();
        assert_eq!(names, ["configuration", "message", "metadata"], "{speaks:?}");
    }
}

/// What has to arrive for an operation: method and params, or line and body.
struct Expected {
    rpc: (&'static str, Value),
    rest: (&'static str, Value),
}

fn expected(rpc: (&'static str, Value), rest: (&'static str, Value)) -> Expected {
    Expected { rpc, rest }
}

type FollowUp = (Value, Expected, Expected, Value);

fn config(id: &str) -> Value {
    json!({"taskId": "task-1", "id": id, "url": "https://hook.example/x"})
}

/// Every follow-up: its arguments, what has to arrive in 1.0 and in 0.3, and what comes back.
fn follow_ups() -> Vec<FollowUp> {
    [of_tasks(), creating(), of_configs()].into_iter().flatten().collect()
}

fn of_tasks() -> Vec<FollowUp> {
    let task = |state| json!({"task": crate::agent::task("task-1", state)});
    let cancel = || json!({"id": "task-1", "metadata": {"reason": "user-request"}});
    let history = || json!({"id": "task-1", "historyLength": 2});
    vec![
        (
            json!({"get_task": {"id": "task-1", "history_length": 2}}),
            expected(
                ("GetTask", history()),
                ("GET /a2a/tasks/task-1?historyLength=2", json!(null)),
            ),
            expected(
                ("tasks/get", history()),
                ("GET /a2a/v1/tasks/task-1?historyLength=2", json!(null)),
            ),
            task("TASK_STATE_COMPLETED"),
        ),
        (
            json!({"cancel_task": cancel()}),
            expected(("CancelTask", cancel()), ("POST /a2a/tasks/task-1:cancel", cancel())),
            expected(("tasks/cancel", cancel()), ("POST /a2a/v1/tasks/task-1:cancel", cancel())),
            task("TASK_STATE_CANCELED"),
        ),
    ]
}

fn creating() -> Vec<FollowUp> {
    let proto = json!({"parent": "tasks/task-1", "config": {
        "name": "tasks/task-1/pushNotificationConfigs/",
        "pushNotificationConfig": {
            "url": "https://hook.example/x", "token": "tok",
            "authentication": {"schemes": ["Bearer"], "credentials": "cred"},
        },
    }});
    let new = json!({
        "taskId": "task-1", "url": "https://hook.example/x", "token": "tok",
        "authentication": {"scheme": "Bearer", "credentials": "cred"},
    });
    let old = json!({"taskId": "task-1", "pushNotificationConfig": {
        "url": "https://hook.example/x", "token": "tok",
        "authentication": {"schemes": ["Bearer"], "credentials": "cred"},
    }});
    vec![(
        json!({"create_push_notification_config": {
            "task_id": "task-1", "url": "https://hook.example/x", "token": "tok",
            "authentication": {"scheme": "Bearer", "credentials": "cred"},
        }}),
        expected(
            ("CreateTaskPushNotificationConfig", new.clone()),
            ("POST /a2a/tasks/task-1/pushNotificationConfigs", new),
        ),
        expected(
            ("tasks/pushNotificationConfig/set", old),
            ("POST /a2a/v1/tasks/task-1/pushNotificationConfigs", proto),
        ),
        json!({"push_notification_config": config("made")}),
    )]
}

fn of_configs() -> Vec<FollowUp> {
    let one = || json!({"taskId": "task-1", "id": "cfg"});
    let old = || json!({"id": "task-1", "pushNotificationConfigId": "cfg"});
    let page = json!({"taskId": "task-1", "pageSize": 5, "pageToken": "p q"});
    vec![
        (
            json!({"get_push_notification_config": {"task_id": "task-1", "id": "cfg"}}),
            expected(
                ("GetTaskPushNotificationConfig", one()),
                ("GET /a2a/tasks/task-1/pushNotificationConfigs/cfg", json!(null)),
            ),
            expected(
                ("tasks/pushNotificationConfig/get", old()),
                ("GET /a2a/v1/tasks/task-1/pushNotificationConfigs/cfg", json!(null)),
            ),
            json!({"push_notification_config": config("cfg")}),
        ),
        (
            json!({"list_push_notification_configs": {
                "task_id": "task-1", "page_size": 5, "page_token": "p q",
            }}),
            expected(
                ("ListTaskPushNotificationConfigs", page),
                (
                    "GET /a2a/tasks/task-1/pushNotificationConfigs?pageSize=5&pageToken=p+q",
                    json!(null),
                ),
            ),
            expected(
                ("tasks/pushNotificationConfig/list", json!({"id": "task-1"})),
                ("GET /a2a/v1/tasks/task-1/pushNotificationConfigs", json!(null)),
            ),
            json!({"push_notification_configs": [config("cfg")]}),
        ),
        (
            json!({"delete_push_notification_config": {"task_id": "task-1", "id": "cfg"}}),
            expected(
                ("DeleteTaskPushNotificationConfig", one()),
                ("DELETE /a2a/tasks/task-1/pushNotificationConfigs/cfg", json!(null)),
            ),
            expected(
                ("tasks/pushNotificationConfig/delete", old()),
                ("DELETE /a2a/v1/tasks/task-1/pushNotificationConfigs/cfg", json!(null)),
            ),
            json!({"deleted": true}),
        ),
    ]
}

// covers: A2A-008, A2A-011, A2A-012, A2A-046, A2A-054, A2A-056, A2A-057
#[tokio::test]
async fn follow_ups_arrive_in_the_words_of_the_version() {
    for speaks in ALL {
        let (server, world) = with_model(speaks).await;
        begin(&world).await;
        for (arguments, new, old, result) in follow_ups() {
            let mut found = world.value(arguments.clone()).await;
            if let Some(list) = found.as_object_mut() {
                list.remove("next_page_token");
            }
            assert_eq!(found, result, "{speaks:?} {arguments}");
            let Expected { rpc, rest } = if speaks.old { old } else { new };
            let seen = server.last();
            if speaks.rest {
                assert_eq!((seen.line().as_str(), seen.json()), rest, "{speaks:?}");
            } else {
                assert_eq!(seen.line(), "POST /a2a");
                let body = seen.json();
                assert_eq!(body["method"], rpc.0);
                assert_eq!(body["params"], rpc.1, "{speaks:?} {arguments}");
                assert_eq!(body["jsonrpc"], "2.0");
                assert!(body["id"].is_u64(), "ids are numbers");
            }
        }
    }
}

// covers: A2A-051
#[tokio::test]
async fn a_task_that_was_not_waited_for_is_polled_until_it_is_completed() {
    for speaks in ALL {
        let polls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&polls);
        let server = crate::server::Server::start(move |seen| {
            if !seen.is_card() && asked(seen, speaks) == "get" {
                let earlier = counter.fetch_add(1, Ordering::SeqCst);
                let state = if earlier < 3 { "working" } else { "completed" };
                return crate::agent::whole(seen, speaks, &one_task(speaks, state));
            }
            crate::agent::model(seen, speaks)
        })
        .await;
        let world = crate::support::World::new(crate::support::config(&server)).await;
        // As the sample of the documents does it.
        let arguments = json!({"message": MESSAGE, "return_immediately": true});
        let mut payload = world.value(arguments).await;
        while payload["task"]["status"]["state"] != "TASK_STATE_COMPLETED" {
            assert!(polls.load(Ordering::SeqCst) < 4, "{speaks:?}: {payload}");
            let id = &payload["task"]["id"];
            payload = world.value(json!({"get_task": {"id": id}})).await;
        }
        assert_eq!(polls.load(Ordering::SeqCst), 4, "{speaks:?}");
    }
}

#[tokio::test]
async fn a_direct_message_is_an_answer_too() {
    for speaks in ALL {
        let server = crate::server::Server::start(move |seen| {
            if seen.is_card() {
                return crate::agent::model(seen, speaks);
            }
            let message = if speaks.old && !speaks.rest {
                json!({"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "hi"}]})
            } else {
                json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}})
            };
            crate::agent::whole(seen, speaks, &message)
        })
        .await;
        let world = crate::support::World::new(crate::support::config(&server)).await;
        let found = world.value(json!({"message": "x"})).await;
        let expected =
            json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}});
        assert_eq!(found, expected, "{speaks:?}");
    }
}

#[tokio::test]
async fn a_tenant_goes_into_the_params_or_into_the_path() {
    for rest in [false, true] {
        let speaks = Speaks { rest, old: false };
        let server = crate::server::Server::start(move |seen| {
            if seen.is_card() {
                let card = crate::agent::card(&seen.base, speaks);
                let tenant = json!("tenant-alpha");
                let card = crate::agent::with(card, "/supportedInterfaces/0/tenant", tenant);
                return crate::server::Reply::json(&card);
            }
            crate::agent::answer(seen, speaks)
        })
        .await;
        let world = crate::support::World::new(crate::support::config(&server)).await;
        begin(&world).await;
        world.value(json!({"get_task": {"id": "task-1"}})).await;
        let seen = server.last();
        if rest {
            assert_eq!(seen.line(), "GET /a2a/tenant-alpha/tasks/task-1");
        } else {
            assert_eq!(seen.json()["params"], json!({"id": "task-1", "tenant": "tenant-alpha"}));
        }
    }
}

#[tokio::test]
async fn data_that_0_3_cannot_carry_stays_here() {
    for rest in [false, true] {
        let (server, world) = with_model(Speaks { rest, old: true }).await;
        let failure = world.failure(json!({"data": [1, 2]})).await;
        assert!(failure.contains("expected an object as `data`"), "{failure}");
        assert!(server.calls().is_empty());
        if rest {
            begin(&world).await;
            let about = json!({"message": "x", "reference_task_ids": ["task-1"]});
            let failure = world.failure(about).await;
            assert!(failure.contains("expected no `reference_task_ids`"), "{failure}");
            assert_eq!(server.calls().len(), 1);
        }
    }
}

#[tokio::test]
async fn a_base_that_names_the_version_is_not_given_it_twice() {
    let server = crate::server::Server::start(|seen| {
        if seen.is_card() {
            let card = crate::agent::card(&seen.base, OLD_REST);
            let place = json!(format!("{}/a2a/v1/", seen.base));
            return crate::server::Reply::json(&crate::agent::with(card, "/url", place));
        }
        crate::agent::answer(seen, OLD_REST)
    })
    .await;
    let world = crate::support::World::new(crate::support::config(&server)).await;
    begin(&world).await;
    assert_eq!(server.last().line(), "POST /a2a/v1/message:send");
}
